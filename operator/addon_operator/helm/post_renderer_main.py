"""The program that Helm hands a rendered manifest: it writes the manifest as the module wants it.

``post_renderer_main.py FILE NAMESPACE``: the changes are in the file; the manifest comes on standard input.
"""

import pathlib
import sys


def main(file: str, namespace: str) -> int:
    """Change the manifest; the exit code is 1, with a sentence, if that cannot be done."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
    import yaml

    from addon_operator.documents import yaml_loader
    from addon_operator.modules.patching import manifest_changes, strategic_merge

    changes = manifest_changes.read(pathlib.Path(file).read_text("utf-8"))
    try:
        manifest = sys.stdin.buffer.read().decode("utf-8", "replace")
        documents = list(yaml_loader.load_all(manifest))
        made = manifest_changes.changed(documents, changes, namespace)
    except (strategic_merge.PatchError, yaml.YAMLError) as error:
        sys.stderr.write(f"module.yaml: {error}\n")
        return 1

    class Dumper(yaml.CSafeDumper):
        """Writes texts so that Helm reads them as texts: ``y`` is a boolean for it."""

        def represent_text(self, text: str) -> yaml.Node:
            is_text = isinstance(yaml_loader.plain(text), str)
            style = "|" if "\n" in text else None if is_text else '"'
            return self.represent_scalar(yaml_loader.STRING, text, style=style)

    Dumper.add_representer(str, Dumper.represent_text)
    if not made:
        # No output is an error for Helm.
        sys.stdout.write("---\n# All that is in this chart belongs to another release.\n")
    yaml.dump_all(made, sys.stdout, Dumper=Dumper, sort_keys=False, allow_unicode=True, explicit_start=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
