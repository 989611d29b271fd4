"""The checksum of a chart's files, and what is found in them."""

import os
import pathlib
import tarfile

import pytest

from addon_operator.helm import helm_errors
from addon_operator.helm.charts import chart_files, plain_files
from addon_operator.kernel import names
from tests.support import clocks
from tests.unit import costs
from tests.unit.helm import fakes

WEB = names.ModuleName("web")
Mention = chart_files.Mention


@pytest.fixture
def reader() -> chart_files.ChartFilesReader:
    return chart_files.ChartFilesReader(fakes.FakeClock())


def write(directory: pathlib.Path, name: str, text: str = "x") -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_same_files_give_the_same_checksum_wherever_they_are(
    reader: chart_files.ChartFilesReader, tmp_path: pathlib.Path
) -> None:
    for root in ("a", "b"):
        write(tmp_path / root, "Chart.yaml", "name: web")
        write(tmp_path / root, "templates/x.yaml", "kind: X")
    first, second = (reader.read(WEB, tmp_path / root) for root in ("a", "b"))
    assert first == second
    assert len(first.checksum) == 40


@pytest.mark.parametrize(
    "name",
    ["Chart.yaml", "values.yaml", "templates/config.yaml", "templates/_helpers.tpl", "charts/dep/Chart.yaml",
     "values.schema.json", ".helmignore", "lib/x", "files/deep/down.txt"],
)  # fmt: skip
def test_a_change_of_what_helm_reads_changes_the_checksum(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, name: str
) -> None:
    before = reader.read(WEB, module_dir)
    write(module_dir, name, "changed")
    assert reader.read(WEB, module_dir).checksum != before.checksum


@pytest.mark.parametrize(
    "name", ["hooks/run.sh", "openapi/values.yaml", "enabled", "crds/a.yaml", "docs/a.md", "tests/a.yaml"]
)
def test_files_that_no_template_asks_for_do_not_count(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, name: str
) -> None:
    before = reader.read(WEB, module_dir)
    write(module_dir, name)
    assert reader.read(WEB, module_dir).checksum == before.checksum


@pytest.mark.parametrize("asks", ['{{ .Files.Get "hooks/run.sh" }}', "{{ tpl .Values.web.text . }}"])
def test_files_count_when_a_template_may_ask_for_them(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, asks: str
) -> None:
    write(module_dir, "templates/files.yaml", asks)
    before = reader.read(WEB, module_dir)
    write(module_dir, "hooks/run.sh")
    assert reader.read(WEB, module_dir).checksum != before.checksum


@pytest.mark.parametrize("name", [".git/index", "hooks/__pycache__/x.pyc", "lib/__pycache__/x.pyc"])
def test_litter_never_counts(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, name: str
) -> None:
    write(module_dir, "templates/files.yaml", '{{ .Files.Get "x" }}')
    before = reader.read(WEB, module_dir)
    write(module_dir, name)
    assert reader.read(WEB, module_dir).checksum == before.checksum


def test_without_chart_yaml_only_what_is_copied_counts(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path
) -> None:
    (module_dir / "Chart.yaml").unlink()
    write(module_dir, "templates/files.yaml", '{{ .Files.Get "hooks/run.sh" }}')
    before = reader.read(WEB, module_dir)
    write(module_dir, "hooks/run.sh")
    assert reader.read(WEB, module_dir).checksum == before.checksum


def test_a_renamed_or_removed_file_changes_the_checksum(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path
) -> None:
    write(module_dir, "templates/a.yaml")
    first = reader.read(WEB, module_dir).checksum
    (module_dir / "templates" / "a.yaml").rename(module_dir / "templates" / "b.yaml")
    second = reader.read(WEB, module_dir).checksum
    (module_dir / "templates" / "b.yaml").unlink()
    third = reader.read(WEB, module_dir).checksum
    assert len({first, second, third}) == 3


def test_an_unchanged_file_is_not_read_again(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = reader.read(WEB, module_dir)

    def refuse(path: pathlib.Path) -> bytes:
        raise AssertionError(f"{path} was read again")

    monkeypatch.setattr(pathlib.Path, "read_bytes", refuse)
    assert reader.read(WEB, module_dir) == before


def test_a_change_that_keeps_size_and_modification_time_is_seen(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path
) -> None:
    path = module_dir / "templates" / "config.yaml"
    status = path.stat()
    before = reader.read(WEB, module_dir)
    path.write_text("kind: ConfigMaq\n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert reader.read(WEB, module_dir).checksum != before.checksum


def test_a_file_written_a_moment_ago_is_read_again(
    module_dir: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = fakes.FakeClock()
    clock.now = (module_dir / "Chart.yaml").stat().st_ctime
    reader = chart_files.ChartFilesReader(clock)
    reader.read(WEB, module_dir)
    reads: list[pathlib.Path] = []
    original = plain_files.read_bytes

    def read_bytes(path: pathlib.Path, most: int) -> bytes:
        reads.append(path)
        return original(path, most)

    monkeypatch.setattr(plain_files, "read_bytes", read_bytes)
    reader.read(WEB, module_dir)
    assert len(reads) == 2


def test_links_are_followed_and_loops_survived(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write(tmp_path, "data/x.yaml", "1")
    (module_dir / "linked").symlink_to(tmp_path / "data")
    (module_dir / "loop").symlink_to(module_dir)
    (module_dir / "nothing").symlink_to(tmp_path / "missing")
    before = reader.read(WEB, module_dir)
    write(tmp_path, "data/x.yaml", "2")
    assert reader.read(WEB, module_dir).checksum != before.checksum


def test_a_directory_that_is_gone_is_an_error_of_the_module(
    reader: chart_files.ChartFilesReader, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(
        helm_errors.ChartError, match=r"cannot read the chart: .*gone: it is gone; put it back"
    ):
        reader.read(WEB, tmp_path / "gone")


@pytest.mark.parametrize(
    ("text", "mention"),
    [
        ("{{ .Capabilities.KubeVersion }}", Mention.CAPABILITIES),
        ('{{ lookup "v1" "Secret" "" "" }}', Mention.LOOKUP),
        ("{{ $.Files.Get `x` }}", Mention.FILES),
        ("{{ tpl .x . }}", Mention.TPL),
        ('{{ if $.Capabilities.APIVersions.Has "a.b/v1" }}', Mention.CAPABILITIES),
        ("{{ .Capabilities | toString }}", Mention.CAPABILITIES),
        ("{{ range .Capabilities.APIVersions }}", Mention.CAPABILITIES | Mention.ALL_APIS),
        ("{{ $seen := $.Capabilities }}", Mention.CAPABILITIES | Mention.ALL_APIS),
        ('{{ index . "Capabilities" }}', Mention.CAPABILITIES | Mention.ALL_APIS),
        ("# as .Capabilities says", Mention.CAPABILITIES),
        ("kind: ConfigMap # mentions nothing but tplx and lookups", Mention.NOTHING),
    ],
)
def test_templates_are_searched_for_what_they_look_at(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, text: str, mention: chart_files.Mention
) -> None:
    write(module_dir, "charts/dep/templates/x.yaml", text)
    assert reader.read(WEB, module_dir).mentions == mention


def test_api_groups_are_found_in_templates_and_in_the_charts_values(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path
) -> None:
    write(
        module_dir,
        "charts/dep/templates/x.yaml",
        '{{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}',
    )
    write(module_dir, "templates/y.tpl", "{{ printf `%s/v1` `cert-manager.io` }}")
    write(module_dir, "charts/dep/values.yaml", "group: gateway.networking.k8s.io\n")
    write(module_dir, "README.md", "See documentation.example.com for more.")
    groups = {"monitoring.coreos.com", "cert-manager.io", "gateway.networking.k8s.io"}
    assert reader.read(WEB, module_dir).api_groups >= groups
    assert "documentation.example.com" not in reader.read(WEB, module_dir).api_groups


def test_a_packed_subchart_looks_at_what_its_files_look_at(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    write(tmp_path, "dep/templates/x.yaml", '{{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" }}')
    (module_dir / "charts").mkdir()
    with tarfile.open(module_dir / "charts" / "dep-1.0.0.tgz", "w:gz") as packed:
        packed.add(tmp_path / "dep", "dep")
    found = reader.read(WEB, module_dir)
    assert found.mentions == Mention.CAPABILITIES
    assert "monitoring.coreos.com" in found.api_groups


def test_a_packed_subchart_that_cannot_be_read_may_look_at_anything(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path
) -> None:
    write(module_dir, "charts/dep-1.0.0.tgz", "packed")
    assert reader.read(WEB, module_dir).mentions == ~Mention.NOTHING


def test_the_largest_files_of_a_chart_are_named_without_what_helm_does_not_get(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "Chart.yaml").write_text("name: web\n")
    for name, size in (("files/a.bin", 3 << 20), ("templates/b.yaml", 2048), ("crds/c.yaml", 5 << 20)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(bytes(size))
    assert chart_files.largest(tmp_path) == (
        "the largest of its files, 3.0 MiB in all: files/a.bin (3.0 MiB), templates/b.yaml (2.0 KiB), "
        "Chart.yaml (0.0 KiB)"
    )
    assert chart_files.largest(tmp_path / "gone") == ""


@pytest.mark.parametrize("text", ["{", "{{", "a.", "a-a.", ".Capabilities", "{{ .APIVersions", "x "])
def test_a_chart_is_searched_once_whatever_it_holds(
    reader: chart_files.ChartFilesReader, module_dir: pathlib.Path, text: str
) -> None:
    def make(size: int) -> pathlib.Path:
        directory = module_dir / str(size)
        write(directory, "Chart.yaml", "name: web")
        write(directory, "templates/x.yaml", text * (size // len(text)))
        return directory

    def work(directory: pathlib.Path) -> None:
        chart_files.ChartFilesReader(fakes.FakeClock()).read(WEB, directory)

    assert costs.is_linear(make, work, 25_000)


@pytest.mark.parametrize("part", ["templates", "Chart.yaml"])
def test_a_part_of_a_chart_that_is_gone_counts_as_removed_only_after_a_while(
    module_dir: pathlib.Path, part: str
) -> None:
    clock = clocks.Clock()
    reader = chart_files.ChartFilesReader(clock, absence=10.0)
    before = reader.read(WEB, module_dir)
    (module_dir / part).rename(module_dir.with_name("away"))
    for _ in range(2):
        with pytest.raises(helm_errors.ChartError, match=f"{part} is gone: put it back"):
            reader.read(WEB, module_dir)
        clock.now += 9
    module_dir.with_name("away").rename(module_dir / part)
    assert reader.read(WEB, module_dir) == before
    (module_dir / part).rename(module_dir.with_name("away"))
    with pytest.raises(helm_errors.ChartError):
        reader.read(WEB, module_dir)
    clock.now += 10
    assert reader.read(WEB, module_dir).checksum != before.checksum
