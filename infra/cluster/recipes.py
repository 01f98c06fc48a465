"""How each part of the cluster is made from Go modules, into a folder that starts empty."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.cluster import toolchain
from infra.cluster.toolchain import LINKED_SMALL, Go
from infra.cluster.versions import Module

SOURCES: Final = Path(__file__).with_name("sources")
"""What is ours in the programs: locked module lists and three small files of Go."""


@dataclass(frozen=True)
class Workshop:
    """Where one part is being made."""

    out: Path
    """Becomes the part's folder in the cache."""
    scratch: Path
    """Thrown away."""
    go: Go
    modules: Mapping[str, Module]

    def copy_of(self, module: str) -> Path:
        """A writable copy of a module, to build as the main one: its own replace lines apply."""
        return copied(self.go.module(self.modules[module], self.scratch), self.scratch / module)

    def ours(self, name: str) -> Path:
        """A copy of the folder `name` of our own sources."""
        return Path(shutil.copytree(SOURCES / name, self.scratch / name))


@dataclass(frozen=True)
class Recipe:
    """One part of the cache."""

    name: str
    modules: tuple[str, ...]
    """Whose versions are in the folder's name, the first without its own name."""
    make: Callable[[Workshop], None]


def kubernetes(shop: Workshop) -> None:
    """All of Kubernetes and etcd, which are tools of one locked module so that they share what they are made of."""
    number = shop.modules["kubernetes"].number
    version = "k8s.io/component-base/version"
    major, minor, _ = number.split(".")
    stamp = f"-X {version}.gitVersion=v{number} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    shop.go.run(
        "build", "-ldflags", f"{LINKED_SMALL} {stamp}", "-o", f"{shop.out}/", "tool", cwd=shop.ours("kubernetes")
    )
    (shop.out / "server").rename(shop.out / "etcd")


def containerd(shop: Workshop) -> None:
    """The daemon, its shim and `ctr`."""
    module = shop.modules["containerd"]
    commands = ("containerd", "containerd-shim-runc-v2", "ctr")
    _install(shop, module, [f"cmd/{name}" for name in commands], tags="no_btrfs,no_zfs,no_devmapper,no_aufs,netgo")


def cni(shop: Workshop) -> None:
    """The four network plugins that the node's configuration names."""
    plugins = ("main/bridge", "main/loopback", "ipam/host-local", "meta/portmap")
    _install(shop, shop.modules["cni"], [f"plugins/{name}" for name in plugins], tags="")


def _install(shop: Workshop, module: Module, packages: list[str], *, tags: str) -> None:
    names = [f"{module.path}/{package}@{module.version}" for package in packages]
    shop.go.run("install", "-tags", tags, "-ldflags", LINKED_SMALL, *names, cwd=shop.scratch, GOBIN=str(shop.out))


def coredns(shop: Workshop) -> None:
    """CoreDNS by a main of our own with five plugins: the stock one pulls in every cloud's SDK and takes minutes."""
    shop.go.run("build", "-ldflags", LINKED_SMALL, "-o", str(shop.out / "coredns"), ".", cwd=shop.ours("coredns"))


def pause(shop: Workshop) -> None:
    """The process that holds a pod's namespaces."""
    shop.go.run("build", "-ldflags", LINKED_SMALL, "-o", str(shop.out / "pause"), ".", cwd=shop.ours("pause"))


def argo(shop: Workshop) -> None:
    """Controller, executor and `argo`, which is the server too, and the manifests.

    The module lacks one file of the executor and the built pages of the interface: both are put into the copy. Go's
    -overlay does not help: it replaces nothing beneath Go's module cache.
    """
    module, copy = shop.modules["argo"], shop.copy_of("argo")
    executor = copy / "workflow" / "executor" / "osspecific"
    shutil.copy(SOURCES / "argo" / "signal_linux.go", executor / "signal_linux.go")
    pages = copy / "ui" / "dist" / "app"
    pages.mkdir(parents=True)
    (pages / "index.html").write_text("<!doctype html><title>argo</title>the pages are not in the module\n")
    stamp = " ".join(
        f"-X {module.path}.{name}={value}"
        for name, value in {"version": module.version, "gitTag": module.version, "gitTreeState": "clean"}.items()
    )
    for command in ("workflow-controller", "argoexec", "argo"):
        shop.go.run("build", "-ldflags", f"{LINKED_SMALL} {stamp}", "-o", f"{shop.out}/", f"./cmd/{command}", cwd=copy)
    shutil.copytree(copy / "manifests", shop.out / "manifests")


def kserve(shop: Workshop) -> None:
    """KServe's controller, and its configuration: CRDs, defaults, webhooks."""
    copy = shop.copy_of("kserve")
    shop.go.run("build", "-ldflags", LINKED_SMALL, "-o", str(shop.out / "kserve-manager"), "./cmd/manager", cwd=copy)
    shutil.copytree(copy / "config", shop.out / "config")


def gateway_api(shop: Workshop) -> None:
    """The CRDs of the Gateway API."""
    source = shop.go.module(shop.modules["gateway-api"], shop.scratch)
    copied(source / "config" / "crd", shop.out / "crd")


RECIPES: Final = (
    Recipe("pause", (), pause),
    Recipe("cni", ("cni",), cni),
    Recipe("gateway-api", ("gateway-api",), gateway_api),
    Recipe("containerd", ("containerd",), containerd),
    Recipe("coredns", ("coredns",), coredns),
    Recipe("kserve", ("kserve",), kserve),
    Recipe("argo", ("argo",), argo),
    Recipe("kubernetes", ("kubernetes", "etcd"), kubernetes),
)


def copied(source: Path, target: Path) -> Path:
    """A writable copy: what lies in Go's cache is read-only."""
    shutil.copytree(source, target)
    for folder, _, files in os.walk(target):
        for path in (Path(folder), *(Path(folder) / name for name in files)):
            path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return target


def unpack(shop: Workshop, package: str) -> None:
    """A Debian package's files, from Debian's own mirror, checked by apt; nothing of it is installed or started."""
    toolchain.run(["apt-get", "download", package], log=shop.go.log, cwd=shop.scratch, variables={})
    archive = next(shop.scratch.glob("*.deb"))
    toolchain.run(["dpkg", "-x", str(archive), str(shop.out)], log=shop.go.log, cwd=shop.scratch, variables={})
