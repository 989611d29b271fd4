"""Each thing that the page on security promises is held by a test, which this table names."""

import re
from typing import Final

from tests.support import rows
from tests.unit.docs.pages import ROOT

PAGE: Final = ROOT / "docs" / "explanation" / "security.md"
HELD: Final = {
    "Who controls the operator": {
        "Schemas can only read files in their module": (
            "unit/loading/test_module_files.py::test_a_schema_may_not_refer_to_files_outside_of_its_module"
        ),
        "are refused, unless `PODPRESET_VOLUME_TYPES` names them": (
            "unit/admission/presets/test_preset_notices_check.py::"
            "test_a_type_of_volume_that_is_not_allowed_is_refused_with_the_field"
        ),
    },
    "Namespaces of releases": {
        "can make the operator not act on that release, and make it act again from chart and values": (
            "integration/test_forged_records.py::"
            "test_records_that_others_wrote_or_changed_are_input_of_nothing"
        ),
        "A genuine record of an earlier time, or of another release": (
            "integration/test_forged_records.py::"
            "test_genuine_records_in_another_time_or_place_are_input_of_nothing"
        ),
        "another revision inside than outside": (
            "unit/helm/releases/test_record_lists.py::"
            "test_no_call_begins_while_helm_would_take_a_record_for_another_revision"
        ),
        "if none is left of it, the release stays as it is": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_a_release_of_which_no_good_revision_is_known_is_not_removed_because_records_are_gone"
        ),
        "only if the operator remembers its release": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_no_hook_of_a_disabled_module_runs_for_a_release_that_nothing_is_remembered_of"
        ),
        "How a revision ended is what the operator remembers": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_what_was_deployed_is_not_installed_again_because_its_revisions_say_that_they_failed"
        ),
        "No label says by which chart": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_no_label_says_by_which_chart_a_secret_is_told_from_one_by_chance"
        ),
        "when and in which order it runs, and when it is deleted": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_a_failed_revision_counts_as_ours_only_if_helm_would_run_its_hooks_as_the_chart_says"
        ),
        "while that is found out does not count": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_what_others_change_while_a_failed_revision_is_looked_at_is_not_signed"
        ),
        "Values and chart in a record of others, or of a revision that failed, decide nothing": (
            "unit/helm/releases/test_record_proofs.py::"
            "test_values_that_others_write_into_a_record_let_no_secret_go_that_a_claim_needs"
        ),
        "A restored backup of records": (
            "integration/test_forged_records.py::test_a_memory_that_is_lost_or_put_back_costs_no_release"
        ),
        "Two operators never take releases from each other": (
            "integration/test_release_namespaces.py::"
            "test_a_release_of_another_operator_is_neither_removed_nor_changed"
        ),
        "which it does directly before each call": (
            "unit/helm/releases/test_record_lists.py::"
            "test_helm_is_not_called_by_a_record_that_others_changed_after_it_was_judged"
        ),
    },
    "Rights": {
        "A test runs the operator with that role": (
            "integration/test_least_privilege.py::test_every_part_works_with_the_rights_that_the_chart_gives"
        ),
        "`HELM_DRIVER: configmap` in `settings`": (
            "integration/test_chart_rights.py::"
            "test_without_records_in_secrets_only_certificates_and_values_are_touched"
        ),
        "that right is limited to their names": (
            "integration/test_least_privilege.py::"
            "test_definitions_that_are_missing_are_created_by_a_right_that_is_held_to_their_names"
        ),
    },
    "Which right makes somebody as strong as what": {
        "somebody who reads all values of these releases": (
            "integration/test_chart_rights.py::test_who_may_view_a_namespace_reads_records_that_are_config_maps"
        ),
        "RBAC lets nobody grant rights that they do not have": (
            "integration/test_least_privilege.py::"
            "test_no_hook_and_no_chart_reaches_beyond_the_rights_of_the_installation_with_the_least"
        ),
        "The operator then has none of these rights": (
            "integration/test_least_privilege.py::test_neither_part_has_rights_of_the_other_where_they_are_apart"
        ),
    },
    "Without reading Secrets": {
        "By default, `podPresets.readSecrets` is `false`": (
            "integration/test_least_privilege.py::"
            "test_secrets_are_neither_read_nor_asked_for_unless_the_chart_says_so"
        ),
    },
    "When you uninstall it": {
        "`helm uninstall` removes the webhook configurations": (
            "integration/test_chart_webhooks.py::"
            "test_pods_are_created_after_an_uninstallation_without_any_operator"
        ),
        "An operator without the chart sets the same owner": (
            "unit/admission/registration/test_registration.py::"
            "test_one_that_was_registered_without_an_owner_gets_it_beside_others"
        ),
    },
    "The process": {
        "It refuses a directory that belongs to another user": (
            "unit/process/test_workspaces.py::test_a_directory_of_another_user_is_refused"
        ),
        "world-writable without sticky bit": (
            "unit/process/test_workspaces.py::test_a_directory_where_everybody_may_replace_files_is_refused"
        ),
        "it removes the directories of killed processes": (
            "unit/process/test_workspaces.py::"
            "test_the_workspace_of_a_killed_process_is_removed_and_that_of_a_live_one_is_not"
        ),
        "Temporary files are made with mode 0600": (
            "integration/test_canaries.py::test_temporary_files_are_for_the_operator_alone"
        ),
        "they are in such a directory in `/dev/shm`": (
            "unit/loading/test_preflight_mistakes.py::"
            "test_what_is_short_has_a_private_place_in_memory_that_goes"
        ),
        "New connections do not trust the previous one": (
            "unit/kube/access/test_credentials.py::test_a_rotated_authority_is_trusted_by_the_next_connection"
        ),
        "Plain HTTP is refused except for loopback": (
            "integration/test_chart_repository_trust.py::test_a_registry_elsewhere_is_not_reached_by_plain_http"
        ),
        "refuses links, absolute paths and `..`": (
            "unit/helm/charts/test_chart_archives.py::test_nothing_lands_outside"
        ),
        "only after its digest was compared": (
            "unit/helm/repositories/test_chart_pull.py::"
            "test_an_archive_must_have_the_digests_of_the_index_and_of_the_module"
        ),
        "A schema of a chart makes nobody fetch anything": (
            "unit/loading/test_stock_schemas.py::test_nobody_fetches_what_a_schema_refers_to_wherever_it_lies"
        ),
        "links of stock charts that lead out of the modules are refused": (
            "unit/helm/charts/test_chart_links.py::test_a_link_that_leads_out_is_named"
        ),
        "its share of three quarters of what the container may have": (
            "unit/helm/test_command.py::"
            "test_processes_of_helm_share_three_quarters_of_the_memory_of_their_container"
        ),
        "names of the operator's own credentials are left out": (
            "unit/app/test_hook_environment.py::"
            "test_every_name_of_a_setting_that_leads_to_a_credential_is_one"
        ),
        "by their parents or by the session that each hook begins": (
            "unit/process/children/test_groups.py::test_descendants_are_known_by_parents_and_sessions"
        ),
    },
    "Bounds": {
        "Whatever the ConfigMap contains, the operator starts": (
            "integration/test_bad_input.py::test_a_stored_bomb_keeps_no_operator_from_starting"
        ),
        "an edit of the ConfigMap that the API server asks about": (
            "integration/test_config_webhook.py::"
            "test_an_edit_that_takes_too_long_to_check_is_refused_before_the_api_server_gives_up"
        ),
        "as many in the manifests of a record that others wrote": (
            "unit/helm/releases/test_record_proofs.py::test_a_record_of_others_costs_no_more_than_its_bound"
        ),
    },
    "What is never shown": {
        "A test puts unique words into all of these places": (
            "integration/test_canaries.py::test_no_secret_is_shown_anywhere_and_none_is_left_behind"
        ),
        "a table of errors of both versions of Helm": (
            "unit/helm/test_messages_recorded.py::test_real_errors_are_reported_without_values"
        ),
        "they take proxies and nothing else": (
            "unit/status/notifications/test_notifier.py::"
            "test_of_the_environment_proxies_are_taken_and_nothing_else"
        ),
        "The file of `plan --record` holds what is known to be free of secrets": (
            "integration/test_plan_state.py::"
            "test_a_recording_has_nothing_of_earlier_values_whatever_became_of_the_release"
        ),
        "has another stand-in at each place": (
            "unit/commands/plan_state/test_plan_state.py::"
            "test_stand_ins_keep_the_type_and_what_is_only_a_switch"
        ),
        "Keys of values are shown, also below a hidden one": (
            "unit/commands/plan_state/test_plan_state.py::"
            "test_stand_ins_keep_the_type_and_what_is_only_a_switch"
        ),
        "the socket has mode 0600": (
            "unit/debug/test_debug_socket.py::test_the_socket_is_its_owners_alone_and_its_directory_is_made"
        ),
    },
    "The admission server": {
        "TLS 1.2 or newer": ("unit/admission/certificates/test_tls.py::test_old_versions_of_tls_are_refused"),
        "the answer is 403, and nothing runs": (
            "unit/admission/certificates/test_path_keys.py::"
            "test_a_path_without_its_random_part_gets_403_and_one_that_another_replica_made_is_looked_up"
        ),
        "it only answers clients with a certificate of that authority": (
            "unit/admission/certificates/test_tls_client_authority.py::"
            "test_only_who_has_a_certificate_of_the_authority_is_answered"
        ),
        "closes all ports of the pods except two": (
            "integration/test_chart_rights.py::test_all_ports_but_two_are_closed"
        ),
        "The admission server refuses everything that is not a review": (
            "unit/admission/test_hostile_requests.py::"
            "test_a_body_that_is_not_a_review_is_refused_in_a_sentence"
        ),
        "The log contains refusals at most once a minute": (
            "unit/admission/test_admission_log.py::"
            "test_requests_that_are_no_reviews_are_counted_and_warned_of_once_a_minute"
        ),
        "A hook cannot lock the cluster out by accident": (
            "integration/test_webhook_attacks.py::test_a_hook_for_everything_does_not_lock_the_cluster_out"
        ),
        "no more of the room for requests that wait than is left free": (
            "unit/admission/server/test_site.py::test_who_floods_hooks_leaves_half_of_the_room_to_others"
        ),
        "something is left then, too": (
            "unit/admission/test_review_budget.py::test_however_many_flood_something_is_left_for_one_more"
        ),
        "Of a hook, only its answer denies a request": (
            "integration/test_webhook_attacks.py::"
            "test_forty_dry_runs_of_one_user_delay_himself_alone_and_a_crash_leaves_it_to_the_failure_policy"
        ),
        "is told only that such a rule failed": (
            "integration/test_config_webhook.py::test_who_may_not_read_the_secret_does_not_find_it_by_asking"
        ),
        "That it did not fail tells as much": (
            "unit/admission/test_config_check.py::"
            "test_that_an_edit_fits_the_secret_is_told_no_more_often_than_that_it_does_not"
        ),
        "Only edits of sections count that have rules": (
            "unit/app/test_admission_part.py::"
            "test_sections_are_named_whose_rules_see_values_of_the_secret_though_they_take_these"
        ),
        "the same text in the place of the same one counts once": (
            "unit/admission/test_config_check.py::test_what_was_there_before_an_edit_is_a_guess_as_well"
        ),
        "after fifty such edits": (
            "unit/admission/test_config_check.py::"
            "test_who_says_to_be_many_users_is_answered_fifty_times_about_the_secret"
        ),
        "for all users except the operator itself": (
            "unit/admission/test_config_check.py::test_nobody_but_the_operator_writes_unchecked"
        ),
    },
    "Metrics and probes": {
        "labels `job`, `namespace` and `instance` of a series do not replace": (
            "integration/test_chart_rights.py::test_what_is_scraped_cannot_pass_for_another_job"
        ),
        "Simultaneous scrapes share one rendered document": (
            "unit/status/test_http_site.py::test_scrapes_at_the_same_time_share_one_render"
        ),
    },
    "Bounds of the ports": {
        "| connections, including handshakes |": (
            "unit/docs/test_reference_pages.py::test_the_bounds_of_the_ports_are_those_of_the_servers"
        ),
    },
    "Dependencies": {
        "Python packages are pinned by hash": (
            "unit/deploy/test_dockerfile.py::test_python_packages_are_held_to_their_hashes"
        ),
        "other programs by checksum": (
            "unit/deploy/test_dockerfile.py::test_downloaded_programs_are_held_to_their_checksums"
        ),
        "name every image by its digest": (
            "unit/deploy/test_supply_chain.py::"
            "test_every_image_of_the_chart_that_is_released_is_named_by_its_digest"
        ),
    },
}


def sections() -> dict[str, str]:
    parts = re.split(r"^#{2,3} (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {title: " ".join(text.split()) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def test_each_section_of_the_page_is_held_by_tests() -> None:
    assert sections().keys() == HELD.keys()


@rows.each("title", HELD)
def test_what_the_page_promises_has_the_test_that_holds_it(title: str) -> None:
    text = sections()[title]
    for promise, test in HELD[title].items():
        assert promise in text, promise
        path, _, name = test.partition("::")
        written = (ROOT / "tests" / path).read_text("utf-8")
        assert f"def {name}(" in written, test
