"""What reviews of one path look like when the API server sends them.

Whoever reaches the port can send others. So names are checked before they become keys, labels or paths, and
where a review has effects it has to be complete.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from addon_operator.admission import reviews
from addon_operator.kernel import names

MAX_DATA_BYTES: Final = 1 << 20
"""What the API server stores in a ConfigMap at the most, keys not counted."""

_UID: Final = re.compile(r"[-A-Za-z0-9_.:]{1,128}")
_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

_T = TypeVar("_T")


class _Metadata(msgspec.Struct):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class _ReviewedObject(msgspec.Struct):
    metadata: _Metadata | None = None


class _ConfigMap(msgspec.Struct):
    data: dict[str, Any] | None = None


class ReviewShape(msgspec.Struct, frozen=True):
    """What is asked of a review of a namespaced object."""

    group: str = ""
    plural: str = ""
    """Of the resource; empty takes any, and does not ask for a complete review."""
    takes_any_object: bool = False
    """Whether names and objects are whatever the API server takes: somebody else looks at them."""
    bounds_data: bool = False
    """Whether the object is a ConfigMap, whose data is bounded."""

    def check(self, review: reviews.Review) -> None:
        """Raise :class:`.reviews.MalformedReviewError` if the review is another one."""
        if self.takes_any_object:
            _check_uid(review)
            return
        _check_names(review)
        if self.plural:
            self._check_complete(review)
        if self.bounds_data:
            _check_data("object", review.object)
            _check_data("oldObject", review.old_object)

    def _check_complete(self, review: reviews.Review) -> None:
        resource = review.resource
        if (resource.group, resource.name) != (self.group, self.plural) or not resource.version:
            raise reviews.MalformedReviewError(
                f"request.resource is {resource.name[:63]!r} of the group {resource.group[:253]!r}: "
                f"only {self.plural!r} of {self.group!r} are asked about here"
            )
        if review.kind.group != self.group or not review.kind.version or not review.kind.name:
            raise reviews.MalformedReviewError("request.kind is not that of request.resource")
        if review.operation not in _OPERATIONS:
            raise reviews.MalformedReviewError("request.operation is not one of the API server's")
        if not review.user:
            raise reviews.MalformedReviewError("the AdmissionReview has no request.userInfo.username")


ANY: Final = ReviewShape()
AS_SENT: Final = ReviewShape(takes_any_object=True)


def _check_uid(review: reviews.Review) -> None:
    if _UID.fullmatch(review.uid) is None:
        raise reviews.MalformedReviewError("request.uid is not a uid")


def _check_names(review: reviews.Review) -> None:
    _check_uid(review)
    if not names.is_dns_label(review.namespace):
        raise reviews.MalformedReviewError("request.namespace is not the name of a namespace")
    if review.name and not names.is_subdomain(review.name):
        raise reviews.MalformedReviewError("request.name cannot be the name of an object")
    _check_metadata("object", review.object, review)
    _check_metadata("oldObject", review.old_object, review)


def _check_metadata(field: str, body: Mapping[str, Any] | None, review: reviews.Review) -> None:
    metadata = _as(_ReviewedObject, field, body).metadata or _Metadata()
    if metadata.namespace not in (None, "", review.namespace):
        raise reviews.MalformedReviewError(f"request.{field} is of another namespace than the request")
    if metadata.name and not names.is_subdomain(metadata.name):
        raise reviews.MalformedReviewError(f"request.{field}.metadata.name cannot be the name of an object")
    if metadata.uid and _UID.fullmatch(metadata.uid) is None:
        raise reviews.MalformedReviewError(f"request.{field}.metadata.uid is not a uid")


def _check_data(field: str, body: Mapping[str, Any] | None) -> None:
    texts = [text for text in (_as(_ConfigMap, field, body).data or {}).values() if isinstance(text, str)]
    if sum(len(text.encode(errors="surrogatepass")) for text in texts) > MAX_DATA_BYTES:
        raise reviews.MalformedReviewError(
            f"the data of the ConfigMap is over {MAX_DATA_BYTES} bytes, more than the API server stores"
        )


def _as(shape: type[_T], field: str, body: Mapping[str, Any] | None) -> _T:
    try:
        return msgspec.convert(body or {}, shape)
    except msgspec.ValidationError as error:
        raise reviews.MalformedReviewError(f"request.{field} is of another shape: {error}") from error
