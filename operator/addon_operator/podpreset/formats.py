"""What a text of the Kubernetes API must look like, and the sentence that says so.

Every pattern keeps to RE2's syntax, for the CustomResourceDefinition states the same ones in CEL.
Source: "Object Names and IDs" and "Labels and Selectors" of the Kubernetes documentation, and the field
rules of PodPreset in Kubernetes 1.19.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from addon_operator.kernel import object_names


@dataclass(frozen=True, slots=True)
class Format:
    """A rule for a text."""

    message: str
    """What the text must be."""
    matches: str = ""
    """The expression that the whole text matches; empty means any text."""
    never: str = ""
    """An expression that is found nowhere in the text; empty means none."""
    longest: int | None = None
    """Highest number of characters."""

    def problems(self, text: str, path: str) -> Iterator[str]:
        """What is wrong with the text: one sentence, or none."""
        if self.longest is not None and len(text) > self.longest:
            yield f"{path}: may not be more than {self.longest} characters long"
        elif not self._fits(text):
            yield f'{path}: "{text}": {self.message}'

    def _fits(self, text: str) -> bool:
        if self.matches and not re.fullmatch(self.matches, text):
            return False
        return not (self.never and re.search(self.never, text))


# Parts of a path that are not "..": they begin with no dot, with one dot, or with two and more behind them.
_PLAIN: Final = r"[^/.][^/]*|\.[^/.][^/]*"
_PART: Final = rf"({_PLAIN}|\.\.[^/]+|\.)"
_REST: Final = rf"(/{_PART}?)*"


LABEL_KEY: Final = Format(
    "a label key is at most 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends, "
    "after an optional lower-case DNS prefix and '/'",
    matches=object_names.LABEL_KEY,
    never="^[^/]{254}",
    longest=317,
)
LABEL_VALUE: Final = Format(
    "a label value is empty or at most 63 letters, digits, '-', '_' or '.', "
    "with a letter or digit at both ends",
    matches=object_names.LABEL_VALUE,
)
DNS_LABEL: Final = Format(
    "must be at most 63 lower-case letters, digits or '-', with a letter or digit at both ends",
    matches=object_names.DNS_LABEL,
)
DNS_SUBDOMAIN: Final = Format(
    "must be lower-case letters, digits, '-' or '.', with a letter or digit at both ends of each part",
    matches=object_names.SUBDOMAIN,
    longest=253,
)
ENV_NAME: Final = Format(
    "must consist of letters, digits, '_', '-' or '.', must not start with a digit or with '..', "
    "and must not be '.'",
    matches=r"[-_a-zA-Z][-._a-zA-Z0-9]*|\.[-_a-zA-Z0-9][-._a-zA-Z0-9]*",
)
ENV_PREFIX: Final = Format(ENV_NAME.message, matches=f"({ENV_NAME.matches})?")
PRINTABLE_ENV_NAME: Final = Format("must be printable ASCII without '='", matches="[ -<>-~]+")
CONFIG_KEY: Final = Format(
    "must consist of letters, digits, '-', '_' or '.', and must not be '.' or start with '..'",
    matches=r"[-_a-zA-Z0-9][-._a-zA-Z0-9]*|\.[-_a-zA-Z0-9][-._a-zA-Z0-9]*",
    longest=253,
)
NO_BACKSTEPS: Final = Format("must not contain '..'", matches=rf"{_PART}?{_REST}")
RELATIVE_PATH: Final = Format(
    "must be a relative path and must not contain '..'", matches=rf"({_PART}{_REST})?"
)
FILE_PATH: Final = Format(
    "must be a relative path that does not start with '..' or contain it",
    matches=rf"({_PLAIN}|\.){_REST}",
)
ABSOLUTE_PATH: Final = Format("must be an absolute path", matches="/[^\\x00]*")
NOT_NEGATIVE: Final = Format("must not be negative", matches="[^-].*")
DRIVER_NAME: Final = Format(
    "must be at most 63 letters, digits, '-' or '.', with a letter or digit at both ends",
    matches=r"[a-zA-Z0-9]([-a-zA-Z0-9.]{0,61}[a-zA-Z0-9])?",
)
RESOURCE: Final = Format(
    "must be limits or requests of cpu, memory, ephemeral-storage or hugepages-<size>, such as limits.cpu",
    matches="(limits|requests)[.](cpu|memory|ephemeral-storage|hugepages-[^/]+)",
)
_SUBSCRIPTED: Final = rf"metadata[.](labels|annotations)\['{object_names.LABEL_KEY}'\]"
ENV_FIELD_PATH: Final = Format(
    "env can refer to metadata.name, metadata.namespace, metadata.uid, one of metadata.labels or "
    "metadata.annotations with its key, spec.nodeName, spec.serviceAccountName, status.hostIP, "
    "status.hostIPs, status.podIP and status.podIPs",
    matches=r"metadata[.](name|namespace|uid)|spec[.](nodeName|host|serviceAccountName)"
    rf"|status[.](hostIP|hostIPs|podIP|podIPs)|{_SUBSCRIPTED}",
)
VOLUME_FIELD_PATH: Final = Format(
    "a volume can refer to metadata.name, metadata.namespace, metadata.uid, metadata.labels and "
    "metadata.annotations, with or without a key",
    matches=rf"metadata[.](name|namespace|uid|labels|annotations)|{_SUBSCRIPTED}",
)
