"""Modules in a checkout that a sidecar renews: a directory for each commit, and a link to the last one."""

import pathlib
import shutil
import subprocess

import pytest

from tests.integration import operator_site

pytestmark = pytest.mark.integration


class Checkout:
    """A local repository, and what git-sync makes of it: worktrees, and a link that moves to the newest."""

    def __init__(self, root: pathlib.Path) -> None:
        self.files, self._root = root / "repository", root / "checkout"
        self.link = self._root / "tree"
        self.files.mkdir()
        self._root.mkdir()
        self._git("init", "--quiet", "--initial-branch=main")

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.com")
        argv = ["git", "-C", str(self.files), *identity, *arguments]
        return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def commit(self) -> None:
        """Commit everything, check the commit out beside the last one, move the link, remove the last one."""
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message=change")
        target = self._root / ".worktrees" / self._git("rev-parse", "HEAD")
        before = self.link.resolve() if self.link.exists() else None
        self._git("worktree", "add", "--quiet", "--detach", str(target))
        fresh = self._root / ".tree.tmp"
        fresh.symlink_to(target.relative_to(self._root))
        fresh.replace(self.link)
        if before is not None:
            shutil.rmtree(before)
            self._git("worktree", "prune")


def test_commits_are_taken_in_and_only_modules_that_they_change_run(site: operator_site.Site) -> None:
    web = site.module("010-web", {"size": '"1"'}, values="webEnabled: true")
    site.hook(web, "before.sh", {"beforeHelm": 1})
    db = site.module("020-db", {"a": "b"}, values="dbEnabled: true")
    site.hook(db, "before-db.sh", {"beforeHelm": 1})
    checkout = Checkout(site.root)
    written = checkout.files / "modules"
    shutil.move(site.modules, written)
    checkout.commit()
    operator = site.start(MODULES_DIR=str(checkout.link / "modules"), WATCH_MODULES="yes")
    operator.wait_ready().wait_idle()
    assert site.revisions() == {"web": 1, "db": 1}

    site.chart(written / "010-web", {"size": '"2"'})
    checkout.commit()
    operator.wait_until(lambda: site.data("web") == {"size": "2"}, "the commit is taken in")
    operator.wait_idle()
    assert site.revisions() == {"web": 2, "db": 1}
    assert site.labels() == ["before.sh beforeHelm", "before-db.sh beforeHelm", "before.sh beforeHelm"]

    shutil.rmtree(written / "020-db")
    site.hook(written / "010-web", "after.sh", {"afterHelm": 1})
    checkout.commit()
    operator.wait_until(lambda: site.deployed() == {"web": 2}, "the module that is gone is purged")
    operator.wait_until(lambda: "after.sh afterHelm" in site.labels(), "the new hook runs")

    (written / "010-web" / "values.yaml").write_text("webEnabled: [")
    checkout.commit()
    operator.wait_logged("is refused, and", "010-web")
    (written / "010-web" / "values.yaml").write_text("webEnabled: true")
    site.chart(written / "010-web", {"size": '"3"'})
    checkout.commit()
    operator.wait_until(lambda: site.data("web") == {"size": "3"}, "a commit mends it")
    operator.stop()
    assert "Traceback" not in operator.log
