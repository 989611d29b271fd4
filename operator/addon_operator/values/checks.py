"""Checks of all values: by the schemas of each section, and by those of the module's chart."""

import functools
from collections.abc import Callable, Collection, Sequence

from msgspec import structs

from addon_operator.documents import json_documents
from addon_operator.kernel import json_types, names
from addon_operator.values import origins, settings_checks, sources, store
from addon_operator.values.schema import schema_violations


class Checks:
    """Checks what a store holds, or would hold, and says of all that is wrong which source has it."""

    def __init__(self, values: store.ValuesStore) -> None:
        self._store = values

    def config_violations(
        self, config: sources.ConfigValues, modules: Collection[names.ModuleName] | None = None
    ) -> list[schema_violations.Violation]:
        """Return all that the config schemas do not allow if ConfigMap and Secret say this; change nothing.

        ``global`` is always checked; ``modules`` are by default those that ``config`` leaves enabled.
        """
        checked = self._store.enabled_by(config) if modules is None else modules
        return [v for module in (None, *checked) for v in self.section_violations(module, config)]

    def section_violations(
        self, module: names.ModuleName | None, config: sources.ConfigValues | None = None
    ) -> list[schema_violations.Violation]:
        """Return the same as :meth:`config_violations` for one section; ``config`` is by default in force."""
        own = self._store.section_of(module)
        config = self._store.config if config is None else config
        said, secret = config.section(own.key), config.secret_section(own.key)
        # What the ConfigMap says of a disabled module is in force for nobody.
        is_first = module is not None and not self._store.flag(module).enabled
        if secret and own.has_rules:
            settings_checks.note_compared(own.key)
        violations = own.config_violations(said, secret, is_first=is_first)
        if not violations and module is not None and own.has_chart:
            over = self._store.section_of(None)
            shared = over.without_patches(config.section(names.GLOBAL_KEY))
            violations = own.chart_violations(own.without_patches(said), shared, secret, is_complete=False)
            violations = self._store.section_of(None).hiding(
                violations, config.secret_section(names.GLOBAL_KEY)
            )
        if not violations and module is not None:
            violations = self._settings_violations(module, own.configured(said), secret)
        return self._with_origins(violations, module, config)

    def _settings_violations(
        self, module: names.ModuleName, settings: json_types.JsonObject, secret: json_types.JsonObject
    ) -> list[schema_violations.Violation]:
        """Return what programs of the module have against settings that the schema takes."""
        own, violations = self._store.section_of(module), []
        verdicts = self._store.settings_verdicts(module, settings)
        if verdicts and secret:
            settings_checks.note_compared(own.key)
        hide = own.hiding_texts(settings, secret) if verdicts else str
        for verdict in verdicts:
            for text in verdict.warnings:
                settings_checks.warn(f"{own.key}: {hide(text)} ({verdict.program})")
            if verdict.error:
                rule = hide(verdict.error)
                violations.append(
                    schema_violations.Violation(
                        own.key,
                        rule,
                        None,
                        verdict.program,
                        (own.key,),
                        sees_secret=bool(secret),
                        is_unanswered=not verdict.is_answer,
                    )
                )
        return violations

    def _with_origins(
        self,
        violations: Sequence[schema_violations.Violation],
        module: names.ModuleName | None,
        config: sources.ConfigValues,
    ) -> list[schema_violations.Violation]:
        @functools.cache  # There may be a hundred, and to fill in the defaults takes its time.
        def below(owner: names.ModuleName | None) -> tuple[list[origins.Layer], list[origins.Layer]]:
            own = self._store.section_of(owner)
            return self._store.layers(owner, config), own.config_default_layers(config.section(own.key))

        def origin(violation: schema_violations.Violation) -> str:
            # What a chart does not allow may come from the shared ``global``.
            layers, defaults = below(None if violation.keys[:1] == (names.GLOBAL_KEY,) else module)
            if violation.is_missing_key and config.secret is not None:
                # Who forgot a key is asked for it in a place that anybody may read.
                layers = layers[:-1]
            if violation.is_default:
                return origins.default_in(violation.schema.replace(".schema.json", ".yaml"))
            return origins.setting(violation.keys[1:], layers, defaults)

        return [structs.replace(one, origin=origin(one)) for one in violations]

    def edit_violations(self, config: sources.ConfigValues) -> list[schema_violations.Violation]:
        """Return the same as :meth:`config_violations`, without sections that stay as they are in force."""
        return self.config_violations(
            config, [m for m in self._store.enabled_by(config) if self._differs(m, config)]
        )

    def _differs(self, module: names.ModuleName, config: sources.ConfigValues) -> bool:
        part = self._store.section_of(module)
        if (
            not self._store.flag(module).enabled
            or module in self._store.withheld
            or not json_documents.equal(config.section(part.key), part.config)
        ):
            return True
        own, key = self._store.section_of(None), names.GLOBAL_KEY
        shared = [own.configured(own.config), own.configured(config.section(key))] if part.has_chart else []
        return bool(shared) and part.gives_chart_other(*shared)

    def checking_set_values(self, module: names.ModuleName) -> Callable[[], None]:
        """Return what checks the values that files, ConfigMap and Secret set, for any thread.

        What is missing may come from a hook, if it was a hook that enabled the module. What is returned
        raises :class:`.InvalidValuesError`.
        """
        config = self._store.config
        is_by_hook = not self._store.is_enabled_by_sources(module)

        def check() -> None:
            violations = self.section_violations(module, config)
            violations = [one for one in violations if not (is_by_hook and one.is_left_out)]
            raise_violations(violations, f"the values of module {module} are not valid")

        return check

    def checking_helm_values(self, module: names.ModuleName) -> Callable[[], None]:
        """Return what checks the values that the module's chart gets now, for any thread.

        ``x-required-for-helm`` counts. A module that a hook enabled was not looked at when the ConfigMap was
        read, so its configuration is checked, too.

        What is returned raises :class:`.InvalidValuesError`.
        """
        parts, config = (
            [self._store.section_of(None).snapshot(), self._store.section_of(module).snapshot()],
            self._store.config,
        )

        def check() -> None:
            violations = self.config_violations(config, [module])
            violations = violations or [
                v for part in parts for v in part.values_violations(part.present, for_helm=True)
            ]
            violations = violations or parts[0].hiding(
                parts[1].chart_violations(parts[1].present, parts[0].present, is_complete=True)
            )
            raise_violations(violations, f"the values of module {module} are not ready for Helm")
            for part in parts:
                part.allow()

        return check


def raise_violations(violations: Sequence[schema_violations.Violation], subject: str) -> None:
    """Raise :class:`.InvalidValuesError` if something is wrong."""
    if violations:
        raise schema_violations.InvalidValuesError(violations, subject)
