"""One section of the values through all its sources."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from msgspec import structs

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel import json_types, names
from addon_operator.values import inspectors, origins, redaction, section_state, sources
from addon_operator.values.patches import hook_values, patch_log, patches
from addon_operator.values.schema import chart_schemas, schema_violations, schemas


class Section:
    """The values under ``global`` or one module's key; results are kept until a source changes.

    A source is replaced and never changed, so a snapshot costs nothing, and a thread works out what the
    sources make: filling in, replaying and masking take their time with large values.
    """

    def __init__(
        self, owner: names.ModuleName | None, inspector: inspectors.Inspector = inspectors.HERE
    ) -> None:
        """``owner``: the module; ``None`` for ``global``, which keeps the switches of hooks, too."""
        self._owner: Final = owner
        self.key: Final = patches.root_key(owner)
        self._inspector = inspector
        self._files = section_state.MergedFiles()
        self._schemas = schemas.SectionSchemas()
        self._config: json_types.JsonObject = {}
        self._secret: json_types.JsonObject = {}
        self._log = patch_log.PatchLog()
        self.made = section_state.MergedValues()
        """What is worked out of all sources; another one once a source changes."""
        self._is_in_force = False
        self._allowed = section_state.AllowedValues()
        self.hook_switches: Mapping[str, bool] = {}
        """Switches of modules that global hooks have set."""

    @property
    def config(self) -> json_types.JsonObject:
        """What the ConfigMap and the Secret over it say; not to be changed."""
        return self._config

    @property
    def secret_places(self) -> tuple[str, ...]:
        """What the values Secret sets, as JSON pointers with the section's key."""
        return hook_values.places_of(self._secret, self.key)

    @property
    def log(self) -> patch_log.PatchLog:
        """What hooks changed."""
        return self._log

    @property
    def present(self) -> json_types.JsonObject:
        """The values through all sources; not to be changed."""
        merged = self.made
        if merged.present is None:
            merged.present = self._replay()
        return merged.present

    @property
    def text(self) -> bytes:
        """:attr:`present` as JSON."""
        self.made.text = self.made.text or json_documents.encode(self.present)
        return self.made.text

    @property
    def config_text(self) -> bytes:
        """:attr:`config` as JSON."""
        self.made.config_text = self.made.config_text or json_documents.encode(self._config)
        return self.made.config_text

    def snapshot(self, config: json_types.JsonObject | None = None) -> "Section":
        """Return the section as it is now, for another thread; ``config``: as if the ConfigMap said that."""
        frozen = copy.copy(self)
        if config is not None:
            frozen.set_config(sources.merge(config, self._secret), self._secret)
        return frozen

    def set_config(self, config: json_types.JsonObject, secret: json_types.JsonObject | None = None) -> bool:
        """Replace what ConfigMap and Secret say together, ``config``; whether that changed its content.

        ``secret`` is the Secret's part of it: all that it sets is hidden from people. Both are kept, and must
        not be changed by anybody.
        """
        if not json_documents.equal(secret or {}, self._secret):
            self._secret = secret or {}
        if json_documents.equal(config, self._config):
            return False
        self._config = config
        self.made = section_state.MergedValues()
        return True

    def come_into_force(self) -> None:
        """Let rules about transitions compare with what ConfigMap and Secret say from now on."""
        self._is_in_force = True

    def set_files(
        self, layers: Sequence[json_types.JsonObject], section_schemas: schemas.SectionSchemas
    ) -> None:
        """Replace what the ``values.yaml`` files say, lowest first, and the schema files."""
        self._files = section_state.MergedFiles(tuple(layers))
        self._schemas = section_schemas
        self.made = section_state.MergedValues()

    def configured(self, config: json_types.JsonObject) -> json_types.JsonObject:
        """Return the files and a state of ConfigMap and Secret, with the config schema's defaults."""
        return inspectors.configured(self._files.merged, config, self._schemas)

    def default_layers(self) -> list[origins.Layer]:
        """Return the section as the defaults of each schema filled it, the values schema first."""
        below = [] if self._schemas.values is None else [_defaults(self._schemas.values, self.present)]
        return [*below, *self.config_default_layers(self._config)]

    def config_default_layers(self, config: json_types.JsonObject) -> list[origins.Layer]:
        """Return the section as the defaults of the config schema fill it if the ConfigMap says this."""
        schema = self._schemas.config
        return [] if schema is None else [_defaults(schema, self.configured(config))]

    def masked(self, value: json_types.JsonObject) -> json_types.JsonObject:
        """Return a copy of a state of the section that hides what is sensitive."""
        return redaction.without_secrets(self._schemas.masked(value), self._secret)

    def hiding_texts(
        self, value: json_types.JsonObject, secret: json_types.JsonObject
    ) -> Callable[[str], str]:
        """Return what hides sensitive values of a state of the section in texts; ``secret``: the Secret's."""
        masked = redaction.without_secrets(self._schemas.masked(value), secret)
        return redaction.redactor(redaction.sensitive_texts(value, masked))

    def masked_operations(self, operations: Sequence[patches.Operation]) -> list[patches.Operation]:
        """Return the operations as a log gives them, without what is sensitive."""
        return [self._masked_operation(operation) for operation in operations]

    def _masked_operation(self, operation: patches.Operation) -> patches.Operation:
        key, *path = json_pointers.parse(str(operation["path"]))
        if key != self.key or "value" not in operation:
            return operation
        value = self._schemas.masked_at(path, operation["value"])
        return {**operation, "value": redaction.without_secrets_at(path, value, self._secret)}

    def config_violations(
        self,
        config: json_types.JsonObject,
        secret: json_types.JsonObject | None = None,
        *,
        is_first: bool = False,
    ) -> list[schema_violations.Violation]:
        """Return what the config schema does not allow if ConfigMap and Secret together say this.

        ``secret`` is the Secret's part of it, by default what it says now. ``is_first``: whatever they said
        before was in force for nobody.
        """
        if self._schemas.config is None and self._schemas.values is None:
            return []
        is_edit = self._is_in_force and not is_first and not json_documents.equal(config, self._config)
        before = self._config if is_edit else None
        violations = self._inspector.config_violations(
            self.key, self._files.merged, config, before, self._schemas
        )
        violations = self._schemas.without_hidden(violations)
        return redaction.without_secrets_in(violations, self._secret if secret is None else secret)

    def values_violations(
        self, value: json_types.JsonObject, *, for_helm: bool = False
    ) -> list[schema_violations.Violation]:
        """Return what the values schema does not allow in values that would follow the present ones."""
        if self._schemas.values is None:
            return []
        before = self.present if self._allowed.value is None else self._allowed.value
        changes = self._schemas.values.has_rules and not json_documents.equal(value, before)
        violations = self._inspector.values_violations(
            self.key, value, before if changes else None, self._schemas.values, for_helm=for_helm
        )
        return redaction.without_secrets_in(self._schemas.without_hidden(violations), self._secret)

    @property
    def has_values_schema(self) -> bool:
        """Whether a schema says what hooks and files may set."""
        return self._schemas.values is not None

    @property
    def has_rules(self) -> bool:
        """Whether a schema has rules in CEL, which may compare one value with another."""
        return any(
            each is not None and each.has_rules for each in (self._schemas.config, self._schemas.values)
        )

    @property
    def has_chart(self) -> bool:
        """Whether there is a chart that may have a schema of its own."""
        return self._schemas.chart is not None

    @property
    def chart_leads_outside(self) -> bool:
        """Whether Helm would fetch what a schema of the chart refers to; also if nobody can tell."""
        part = self._schemas.chart
        chart = None if part is None else part.read()
        return part is not None and (chart is None or chart.leads_outside)

    def chart_violations(
        self,
        value: json_types.JsonObject,
        global_values: json_types.JsonObject,
        secret: json_types.JsonObject | None = None,
        *,
        is_complete: bool,
    ) -> list[schema_violations.Violation]:
        """Return what the chart's own schema does not allow if these are the values.

        ``secret`` is as for :meth:`config_violations`. Without ``is_complete``, hooks may still fill in what
        is missing, and change what nobody has set. What comes from the shared ``global`` is named, and
        shown, as it is there.
        """
        part = self._schemas.chart
        chart = None if part is None else part.read()
        if part is None or chart is None or not chart.chart.has_schemas:
            return []
        chart_values = part.arrange({names.GLOBAL_KEY: global_values, self.key: value})
        violations = [
            schema_violations.of_global(one, chart_values)
            for one in self._inspector.chart_violations(chart_values, chart)
        ]
        violations = [
            structs.replace(
                one, is_default=not (one.is_missing_key or json_pointers.exists(chart_values, one.keys))
            )
            for one in violations
        ]
        may_change = part.has_hooks and not is_complete
        violations = [
            self._of_section(one, part, value) for one in violations if not (may_change and one.is_left_out)
        ]
        return self.hiding(violations, secret)

    def gives_chart_other(self, one: json_types.JsonObject, other: json_types.JsonObject) -> bool:
        """Say whether the chart gets other values with one shared ``global`` than with another."""
        part = self._schemas.chart
        if part is None:
            return False
        own = self.configured(self._config)
        arranged = [part.arrange({names.GLOBAL_KEY: each, self.key: own}) for each in (one, other)]
        return not json_documents.equal(*arranged)

    def _of_section(
        self,
        violation: schema_violations.Violation,
        part: chart_schemas.SectionChart,
        value: json_types.JsonObject,
    ) -> schema_violations.Violation:
        """Return the same with its place in the values: in the section, or in the shared ``global``."""
        keys = violation.keys
        is_shared = keys[:1] == (names.GLOBAL_KEY,) and not (
            violation.is_left_out or json_pointers.exists(value, keys)
        )
        if not part.below and not is_shared:
            keys = (self.key, *keys)
        return structs.replace(violation, keys=keys, path=json_pointers.format_path(keys))

    def hiding(
        self, violations: Sequence[schema_violations.Violation], secret: json_types.JsonObject | None = None
    ) -> list[schema_violations.Violation]:
        """Return what is wrong, without values that are hidden in this section; ``secret`` as elsewhere."""
        above = self._secret if secret is None else secret
        return [
            redaction.without_secrets_in([self._hiding(one)], above)[0]
            if one.keys[:1] == (self.key,)
            else one
            for one in violations
        ]

    def _hiding(self, violation: schema_violations.Violation) -> schema_violations.Violation:
        if violation.value is None:
            return violation
        path = [str(key) for key in violation.keys[1:]]
        shown = self._schemas.masked_at(path, json_documents.decode(violation.value))
        return structs.replace(violation, value=schemas.HIDDEN) if shown == schemas.HIDDEN else violation

    def allow(self) -> None:
        """Note that the values schema allows the present values; of a snapshot, too."""
        self._allowed.value = self.present

    def skipped_rules(self) -> list[schema_violations.Violation]:
        """Return the rules that are skipped, because they read keys that are missing, each once."""
        checked = (
            (self._schemas.config, self.configured(self._config)),
            (self._schemas.values, self.present),
        )
        violations = [
            rule
            for schema, value in checked
            if schema is not None
            for rule in schema.skipped_rules(self.key, value)
        ]
        violations = redaction.without_secrets_in(self._schemas.without_hidden(violations), self._secret)
        return list({(one.path, one.rule): one for one in reversed(violations)}.values())[::-1]

    def patched(self, patch: patches.ValuesPatch) -> section_state.SectionPatch:
        """Return what a hook's patch makes of the present values, for :meth:`.Section.take`.

        It changes nothing, and may run in any thread.

        Raises :class:`.PatchError` or :class:`.InvalidValuesError`.
        """
        patches.check_roots(self._owner, patch, switches=True)
        document: json_types.JsonObject = {self.key: json_documents.copy(self.present), **self.hook_switches}
        patched = patches.apply_strictly(document, patch)
        steps = [step for step in patched if step.path[0] == self.key]
        value = cast("json_types.JsonObject", document.pop(self.key))
        if self._schemas.values is not None:
            filled = json_documents.copy(value)
            self._schemas.values.fill(filled)
            steps, value = self._with_defaults(self._schemas.values, filled, steps), filled
        text = json_documents.encode(value)
        if violations := self.values_violations(value):
            raise self._refused(patch, violations, value)
        return section_state.SectionPatch(
            value,
            text,
            self._log_with(steps, value, len(text)),
            not json_documents.equal(self.present, value),
            cast("dict[str, bool]", document),
            (self.made, self.hook_switches),
        )

    def _log_with(
        self, steps: Sequence[patches.PatchStep], value: json_types.JsonObject, size: int
    ) -> patch_log.PatchLog:
        log = self._log.copied()
        log.append(steps)
        if log.is_excessive(size):
            log.fold({self.key: self.without_patches(self._config)}, {self.key: value})
        return log

    def _refused(
        self,
        patch: patches.ValuesPatch,
        violations: Sequence[schema_violations.Violation],
        value: json_types.JsonObject,
    ) -> schema_violations.InvalidValuesError:
        before = self.values_violations(self.present)
        if all(violation in before for violation in violations):
            subject = f"the values of {self.key} were not valid before {patch.source} changed them"
            return schema_violations.InvalidValuesError(violations, subject)
        return schema_violations.of_patch(patch, violations, {self.key: value}, before)

    def _with_defaults(
        self, schema: schemas.Schema, filled: json_types.JsonObject, steps: Sequence[patches.PatchStep]
    ) -> list[patches.PatchStep]:
        # Later patches build on the defaults that this one brought in; the log must know of them.
        written = patch_log.fill_writes(steps, schema.fill_at)
        document: json_types.JsonObject = {self.key: json_documents.copy(self.present)}
        patch_log.replay(document, written)
        return [*written, *patch_log.difference(document, {self.key: filled})]

    def is_current(self, patch: section_state.SectionPatch) -> bool:
        """Say whether the patch was worked out from what is in force."""
        merged, hook_switches = patch.made_from
        return merged is self.made and hook_switches is self.hook_switches

    def take(self, patch: section_state.SectionPatch) -> bool:
        """Take a patch over; whether it changed the content of the values."""
        if patch.hook_switches != self.hook_switches:
            self.hook_switches = patch.hook_switches
        self._log, self.made = patch.log, section_state.MergedValues(patch.value, patch.text)
        self.allow()
        return patch.changed

    def adopt(self, given: Sequence[patches.ValuesPatch]) -> None:
        """Take over what hooks gave elsewhere; what does not apply to the values here has no effect.

        Raises :class:`.PatchError` for a place outside of this section.
        """
        for patch in given:
            patches.check_roots(self._owner, patch, switches=False)
        log = self._log.copied()
        for patch in given:
            log.append(patch.steps())
        self._log = log
        self.made = section_state.MergedValues()

    def drop_patches(self) -> None:
        """Forget what hooks changed."""
        self._log = patch_log.PatchLog()
        self._allowed = section_state.AllowedValues()
        self.made = section_state.MergedValues()

    def without_patches(self, config: json_types.JsonObject) -> json_types.JsonObject:
        """Return the section as files, a state of the ConfigMap and the schemas' defaults make it."""
        # Hooks see the defaults and patch what they see, so defaults lie below patches; they also lie above,
        # for what patches removed or made.
        value = self.configured(config)
        if self._schemas.values is not None:
            self._schemas.values.fill(value)
        return value

    def _replay(self) -> json_types.JsonObject:
        document: json_types.JsonObject = {self.key: self.without_patches(self._config)}
        self._log.replay(document)
        value = cast("json_types.JsonObject", document[self.key])
        if self._schemas.values is not None:
            self._schemas.values.fill(value)
        return value


def _defaults(schema: schemas.Schema, filled: json_types.JsonObject) -> origins.Layer:
    return origins.Layer(origins.default_in(schema.source), filled)
