"""Bindings as a test says."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from addon_operator.engine.bindings import hook_bindings, hook_tasks, webhooks


class WaitingBindings(hook_bindings.HookBindings):
    """Bindings of which some cannot be followed just now, by their owner."""

    def __init__(self, waiting: Mapping[str, list[hook_bindings.WaitingBinding]] | None = None) -> None:
        self.of_owner = dict(waiting or {})
        self.answers: dict[str, list[webhooks.AnsweringRow]] = {}
        self.failures: list[hook_tasks.AllowedFailure] = []

    @property
    @override
    def allowed_failures(self) -> Sequence[hook_tasks.AllowedFailure]:
        return self.failures

    @property
    @override
    def owners(self) -> set[str]:
        return {*self.of_owner, *self.answers}

    @override
    def waiting(self, owner: str) -> list[hook_bindings.WaitingBinding]:
        return self.of_owner.get(owner, [])

    @override
    def answering(self, owner: str) -> list[webhooks.AnsweringRow]:
        return self.answers.get(owner, [])
