"""The wheel: what is in it, and that its commands work where only the wheel is.

Built from the sources, installed with the `pocl` extra into a fresh virtual environment (not
editable, nothing shared with the one that runs the tests), used from an empty folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MAPPED = ("emu", "benchmarks", "kernels_cl")  # installed below acs_cl, see pyproject.toml
DATA = {".cl", ".cu", ".h", ".json", ".typed"}
NO_NETWORK = (
    "NewConnectionError",
    "NameResolutionError",
    "Network is unreachable",
    "Connection refused",
)


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of somebody who has never run this: no paths, no overrides, no caches."""
    ours = ("PYTHON", "ACS_CL_", "PYOPENCL_", "POCL_", "VIRTUAL_ENV", "SKBUILD_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    # PoCL's wheel builds nothing on CPUs that are newer than it is, unless this asks for a repair
    asked = {"ACS_CL_POCL_CPU": "auto"}
    return environment | asked | {"XDG_CACHE_HOME": str(home), "PYTHONUTF8": "1"}


def pip(python: Path | str, *arguments: str, **environment: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    said = done.stdout + done.stderr
    if done.returncode and any(sign in said for sign in NO_NETWORK):
        pytest.skip("a fresh environment needs the package index, which cannot be reached")
    assert done.returncode == 0, said


def build(where: Path, **environment: str) -> Path:
    pip(sys.executable, "wheel", "--no-deps", f"--wheel-dir={where}", str(ROOT), **environment)
    (built,) = where.glob("*.whl")
    return built


def cores(wheel: Path) -> list[str]:
    """The native core, if the wheel has it."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("acs_cl/_core")]
    return [name for name in names if not name.endswith(".pyi")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The folder of commands of a new environment that has the wheel and what it asks for."""
    where = tmp_path_factory.mktemp("fresh")
    venv.create(where, with_pip=True)
    commands = where / ("Scripts" if os.name == "nt" else "bin")
    pip(commands / "python", "install", f"acs_cl[pocl] @ {wheel.as_uri()}")
    return commands


@pytest.fixture
def use(fresh: Path, tmp_path: Path) -> Use:
    return Use(fresh, tmp_path)


class Use:
    """Runs commands of the fresh environment in a folder that is empty at first."""

    def __init__(self, commands: Path, scratch: Path) -> None:
        self.commands = commands
        self.folder = scratch / "empty"
        self.folder.mkdir()
        self.environment = clean_environment(scratch / "cache")

    def __call__(self, command: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.commands / command), *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"{command} {arguments}:\n{done.stdout}{done.stderr}"
        return done.stdout


def test_everything_lands_below_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names} - {"acs_cl"}
        top_level = {name.split("/")[0] for name in names}
    assert info.startswith("acs_cl-")
    assert info.endswith(".dist-info")
    assert top_level == {"acs_cl", info}
    strays = [name for name in names if "test" in name or "__pycache__" in name]
    assert strays == ["acs_cl/pytest_plugin.py"]  # which is for tests of others


def test_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    folders = {"acs_cl": "acs_cl"} | {name: f"acs_cl/{name}" for name in MAPPED}
    expected = {
        f"{target}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, target in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in DATA | {".py", ".pyi"} or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("acs_cl/")}
    assert "acs_cl/py.typed" in held
    assert expected == held - set(cores(wheel))


def test_wheel_is_pure_or_has_one_native_core(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl") == (not cores(wheel))
    assert len(cores(wheel)) <= 1
    if shutil.which("c++") and not os.environ.get("ACS_CL_PURE"):
        assert cores(wheel), "there is a compiler, and the native core was not built"


@pytest.mark.parametrize("without", [{"ACS_CL_PURE": "1"}, {"CXX": "no-such-compiler"}], ids=str)
def test_wheel_is_pure_where_that_is_asked_for_or_there_is_no_compiler(
    without: dict[str, str], tmp_path: Path
) -> None:
    wheel = build(tmp_path, **without)
    assert wheel.name.endswith("-py3-none-any.whl")
    assert not cores(wheel)


def test_wheel_carries_its_license(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith("/LICENSE")]


def test_mapped_folders_import_from_the_installation(use: Use) -> None:
    code = (
        "import sys, importlib, importlib.util, importlib.resources as resources, pathlib\n"
        "import acs_cl\n"
        f"for name in {MAPPED!r}:\n"
        "    module = importlib.import_module(f'acs_cl.{name}')\n"
        "    assert pathlib.Path(sys.prefix) in pathlib.Path(module.__file__).parents, module\n"
        "    assert importlib.util.find_spec(name) is None, name\n"
        "assert resources.files('acs_cl').joinpath('py.typed').is_file()\n"
    )
    use("python", "-c", code)


def test_doctor_reports_json_and_the_core_that_is_in_the_wheel(use: Use, wheel: Path) -> None:
    report = json.loads(use("acs-cl", "doctor", "--json"))
    assert report["core"] == ("native" if cores(wheel) else "pure Python (it was not built)")


def test_bench_measures_exports_and_draws(use: Use) -> None:
    words = ("vec", "--preset", "tiny", "--backend", "lanes", "--export", "out.json")
    printed = use("acs-cl", "bench", *words, "--plots", "pictures")
    found = json.loads((use.folder / "out.json").read_text("utf-8"))
    assert {"bare", "serial", "lanes", "expert"} <= set(found["workloads"]["vec"]["rows"])
    assert found["machine"]["driver"] in printed
    assert len(list((use.folder / "pictures").glob("*.png"))) == 2
    collected = use("acs-cl", "bench", "--collect", ".")
    assert found["machine"]["date"] in collected


def test_demo_draws_its_picture(use: Use) -> None:
    printed = use("acs-cl", "demo", "--quick", "--out", "picture.png")
    picture = use.folder / "picture.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert [path.name for path in use.folder.iterdir()] == ["picture.png"]
    assert printed.strip()
