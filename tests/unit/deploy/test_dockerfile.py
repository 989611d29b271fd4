"""The recipe of the image, read; ``make image-test`` builds and runs it."""

import re

from tests.support import rows
from tests.unit.deploy import dockerfile

INSTRUCTIONS = dockerfile.read()
FINAL = dockerfile.last_stage(INSTRUCTIONS)
ARGUMENTS = dict(one.arguments.split("=", 1) for one in INSTRUCTIONS if one.name == "ARG")
CHECKSUMS = (dockerfile.PATH.parent / "checksums").read_text("utf-8").splitlines()


def of(name: str, instructions: list[dockerfile.Instruction] = INSTRUCTIONS) -> list[str]:
    return [one.arguments for one in instructions if one.name == name]


def test_everything_that_is_copied_is_there() -> None:
    copied = dockerfile.copied(INSTRUCTIONS)
    assert copied
    assert [source for source in copied if not (dockerfile.ROOT / source).exists()] == []


def test_what_is_copied_is_not_kept_out_of_the_build() -> None:
    lines = (dockerfile.ROOT / ".dockerignore").read_text("utf-8").splitlines()
    let_in = tuple(f"{line[1:]}/" for line in lines if line.startswith("!"))
    assert "*" in lines
    copied = dockerfile.copied(INSTRUCTIONS)
    assert [source for source in copied if not f"{source.rstrip('/')}/".startswith(let_in)] == []


@rows.each("name", ["PYTHON_IMAGE", "GO_IMAGE"])
def test_a_base_image_has_a_version_and_can_be_given_by_digest(name: str) -> None:
    pattern = r"docker\.io/library/[a-z]+:\d+\.\d+[a-z0-9.-]*(@sha256:[0-9a-f]{64})?"
    assert re.fullmatch(pattern, ARGUMENTS[name]), "podman and buildah take whole names only"
    assert any(f"${{{name}}}" in line for line in of("FROM"))


def test_no_stage_names_an_image_otherwise() -> None:
    images = [one.words[0] for one in INSTRUCTIONS if one.name == "FROM"]
    assert set(images) <= {"${PYTHON_IMAGE}", "${GO_IMAGE}"}


def test_the_go_image_is_new_enough_for_the_pins() -> None:
    major_minor = re.match(r"docker.io/library/golang:(\d+\.\d+)", ARGUMENTS["GO_IMAGE"])
    assert major_minor is not None
    for component in ("helm4", "control-plane"):
        text = (dockerfile.ROOT / "deploy" / "devcluster" / component / "go.mod").read_text("utf-8")
        assert f"\ngo {major_minor[1]}." in text


def test_downloaded_programs_are_held_to_their_checksums() -> None:
    downloads = " ".join(of("RUN"))
    assert "sha256sum --check --strict" in downloads
    files = set(re.findall(r"/([a-z-]+)-\$\{TARGETARCH\}\"", downloads))
    listed = {line.split()[1].rsplit("-", 1)[0] for line in CHECKSUMS}
    assert files == listed == {"jq-linux", "tini-static"}


@rows.each("architecture", ["amd64", "arm64"])
def test_each_architecture_has_a_checksum_of_each_program(architecture: str) -> None:
    sums = [line.split() for line in CHECKSUMS if line.endswith(f"-{architecture}")]
    assert len(sums) == 2
    assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum, _ in sums)


def test_python_packages_are_held_to_their_hashes() -> None:
    installs = [part for line in of("RUN") for part in line.split("&&") if "pip install" in part]
    assert installs
    assert all("--require-hashes" in part or "--no-deps dist/" in part for part in installs)


def test_the_image_runs_as_a_numeric_user_that_is_not_root() -> None:
    (user,) = of("USER", FINAL)
    number, group = user.split(":")
    assert int(number) >= 10_000
    assert int(group) >= 10_000
    after = FINAL[[one.name for one in FINAL].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & {one.name for one in after}


def test_the_image_starts_the_operator_behind_an_init() -> None:
    assert of("ENTRYPOINT", FINAL) == ['["/usr/sbin/tini", "--", "addon-operator"]']
    assert of("CMD", FINAL) == ['["start"]']


def test_the_image_has_the_tools_that_hooks_expect() -> None:
    tools = " ".join(of("RUN"))
    assert all(f"/out/{tool}" in tools for tool in ("helm", "kubectl", "jq", "tini"))
    copies = of("COPY", FINAL)
    assert "--from=tools /out/helm /out/kubectl /out/jq /usr/local/bin/" in copies
    assert "--from=tools /out/tini /usr/sbin/tini" in copies


def test_the_recipe_needs_no_instruction_that_only_one_image_format_or_builder_knows() -> None:
    used = {one.name for one in INSTRUCTIONS}
    assert used <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    # /bin/sh is dash.
    assert not [line for line in of("RUN") if "<<" in line or "[[" in line or "pipefail" in line]


def test_no_directory_is_set_that_another_name_of_the_setting_could_not_outrank() -> None:
    variables = {name for line in of("ENV", FINAL) for name in re.findall(r"([A-Z_]+)=", line)}
    assert variables == {"PATH", "HOME", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
    assert of("WORKDIR", FINAL) == ["/"], "the defaults are modules and global-hooks below it"


def test_hooks_do_not_find_the_operators_interpreter_and_programs() -> None:
    path = re.search(r"PATH=(\S+)", " ".join(of("ENV", FINAL)))
    assert path is not None
    assert "/opt" not in path[1]


def test_hooks_find_the_shell_library_where_they_do_in_the_image_of_the_go_operator() -> None:
    shell = "operator/addon_operator/shell"
    copies = of("COPY", FINAL)
    assert f"{shell}/shell_lib.sh /shell_lib.sh" in copies
    assert f"{shell}/frameworks/ /frameworks/" in copies
    assert (dockerfile.ROOT / shell / "frameworks" / "shell" / "hook.sh").is_file()
