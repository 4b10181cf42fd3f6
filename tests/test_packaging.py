"""The recipe and the release workflow say what pyproject.toml says. Neither was run yet; the recipe
is rendered, where its builder is at hand (`make recipe`)."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import acs_cl

ROOT = Path(__file__).resolve().parent.parent
RENAMED = {"libclang": {"libclang", "python-clang"}}
"""What conda-forge calls otherwise."""


def parsed(path: str) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask, of the extra dev")
    return yaml.safe_load((ROOT / path).read_text("utf-8"))


def project() -> Any:
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 reads no TOML")
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def split(requirement: str) -> tuple[str, str]:
    name, bound = re.match(r"([\w.-]+)\s*(.*)", requirement).groups()  # type: ignore[union-attr]
    return name, bound.replace(" ", "")


def test_recipe_requires_what_the_package_requires() -> None:
    recipe, package = parsed("packaging/conda/recipe.yaml"), project()
    expected = {"python": package["project"]["requires-python"]}
    for name, bound in map(split, package["project"]["dependencies"]):
        expected |= dict.fromkeys(RENAMED.get(name, {name}), bound)
    assert dict(map(split, recipe["requirements"]["run"])) == expected
    build = dict(map(split, package["build-system"]["requires"]))
    host = dict(map(split, recipe["requirements"]["host"]))
    assert {name: host.get(name) for name in build} == build


def test_recipe_is_of_this_version_and_has_its_command() -> None:
    recipe, package = parsed("packaging/conda/recipe.yaml"), project()
    assert recipe["context"]["version"] == acs_cl.__version__
    scripts = [f"{name} = {target}" for name, target in package["project"]["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    assert (ROOT / recipe["about"]["license_file"]).exists()
    assert (ROOT / "packaging/conda" / recipe["source"]["path"]).resolve() == ROOT


@pytest.mark.parametrize("python", ["3.10", "3.13"])
@pytest.mark.parametrize("platform", ["linux-64", "osx-arm64", "win-64"])
def test_recipe_renders(python: str, platform: str) -> None:
    rattler = pytest.importorskip("rattler_build", reason="`make recipe` fetches rattler-build")
    recipe = rattler.Stage0Recipe.from_file(str(ROOT / "packaging/conda/recipe.yaml"))
    on = rattler.PlatformConfig(target_platform=platform, host_platform=platform)
    variants = {"python": [f"{python}.*"], "cxx_compiler": ["cxx"], "c_stdlib": ["libc"]}
    config = rattler.RenderConfig(platform=on)
    (made,) = recipe.render(rattler.VariantConfig(variants), config)
    found = made.recipe.to_dict()
    assert found["package"] == {"name": "acs_cl", "version": acs_cl.__version__}
    assert found["build"]["string"].startswith(f"py{python.replace('.', '')}")
    assert "${{" not in str(found["requirements"]) + str(found["tests"])
    assert ("pocl" in str(found["tests"])) == (platform != "win-64")


def test_release_publishes_only_what_was_built_and_tried() -> None:
    release = parsed(".github/workflows/release.yml")
    jobs = release["jobs"]
    publish = jobs["publish"]
    assert set(publish["needs"]) == {"tests", "wheels", "sources"}
    assert "ref_type == 'tag'" in publish["if"]
    assert publish["environment"] == "release"
    assert release["permissions"] == {"contents": "read"}
    writers = [name for name, job in jobs.items() if "permissions" in job]
    assert writers == ["publish"]
    for name, job in jobs.items():
        needs = job.get("needs", [])
        for other in [needs] if isinstance(needs, str) else needs:
            assert other in jobs, f"{name} needs {other}"
    systems = " ".join(jobs["wheels"]["strategy"]["matrix"]["os"])
    assert all(system in systems for system in ("ubuntu", "macos", "windows"))


def test_version_of_a_tag_is_read_as_the_workflow_reads_it() -> None:
    release = parsed(".github/workflows/release.yml")
    step = release["jobs"]["version"]["steps"][1]["run"]
    pattern = re.search(r"s/(.*)/\\1/p", step)
    assert pattern is not None
    told = pattern[1].replace(r"\(", "(").replace(r"\)", ")")
    text = (ROOT / "acs_cl" / "_version.py").read_text("utf-8")
    assert re.findall(told, text, re.MULTILINE) == [acs_cl.__version__]


def test_release_uses_the_pythons_and_commands_there_are() -> None:
    jobs, package = parsed(".github/workflows/release.yml")["jobs"], project()
    said = [re.search(r":: (3\.\d+)$", one) for one in package["project"]["classifiers"]]
    versions = [one[1] for one in said if one]
    assert f">={versions[0]}" == package["project"]["requires-python"]
    wheels = package["tool"]["cibuildwheel"]
    assert wheels["build"].split() == [f"cp{one.replace('.', '')}-*" for one in versions]
    steps = [step for job in jobs.values() for step in job["steps"]]
    used = [
        step["with"]["python-version"] for step in steps if "python-version" in step.get("with", {})
    ]
    assert used
    assert set(used) <= set(versions)
    made = re.findall(
        r"^(?:run: )?make (\w+)", "\n".join(step.get("run", "") for step in steps), re.M
    )
    assert made
    rules = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    assert set(made) <= set(rules)
    tried = [word for word in wheels["test-command"].split() if word.endswith(".py")]
    assert tried
    assert all((ROOT / one.rstrip("'")).exists() for one in tried)
    builder = next(step["uses"] for step in steps if "cibuildwheel" in step.get("uses", ""))
    assert int(builder.partition("@v")[2].split(".")[0]) >= 3, "v2 knows no test-sources"
