"""The builder: kaniko's own image, its arguments a list, nothing of ours inside.

Source: kaniko 1.28. Uncompressed caching keeps a large layer out of memory. It exits 1 on everything, so its own
retries cure a registry's hiccup and Argo's only a lost pod. A volume over a COPY target would hide it: none lies there.
"""

from __future__ import annotations

from typing import Final

from hera.workflows import Artifact, Container, NoneArchiveStrategy, Parameter
from hera.workflows import models as m

from pipelines._build import IO, STEP_LABEL, emptied, executor, reference, resources, retry

NAME: Final = "build-image"
IMAGE: Final = "seatrial/kaniko"
"""Symbolic: an overlay puts the fork that is kept up, by digest, in its place."""

DEADLINE_S: Final = 3600


def build_image() -> Container:
    """Context in, digest out."""
    return Container(
        name=NAME,
        labels={STEP_LABEL: NAME},
        annotations={"workflows.argoproj.io/description": "Build the image that holds the bundle, and push it."},
        image=IMAGE,
        command=["/kaniko/executor"],
        args=arguments(),
        inputs=[
            Parameter(name="repository", description="where to push, like registry/seatrial/cart-abandonment"),
            Parameter(name="tag", description="hash of all that goes into the image"),
            Artifact(name="context", path=f"{IO}/in/context", archive=NoneArchiveStrategy()),
        ],
        outputs=[
            Parameter(
                name="digest",
                value_from=m.ValueFrom(path=f"{IO}/out/params/digest", default=""),
                description="sha256:… of the image's manifest",
            )
        ],
        env=[m.EnvVar(name="SEATRIAL_IO", value=IO)],
        env_from=[m.EnvFromSource(config_map_ref=m.ConfigMapEnvSource(name="seatrial-registry"))],
        resources=resources(cpu="1", memory="2Gi", **{"ephemeral-storage": "20Gi"}),
        active_deadline_seconds=DEADLINE_S,
        retry_strategy=retry(3),
        volumes=[
            emptied("io"),
            m.Volume(
                name="registry-credentials",
                secret=m.SecretVolumeSource(
                    secret_name="seatrial-registry-credentials",  # noqa: S106 - a Secret's name, not a secret
                    optional=True,
                    items=[m.KeyToPath(key=".dockerconfigjson", path="config.json")],
                ),
            ),
        ],
        volume_mounts=[
            m.VolumeMount(name="io", mount_path=IO),
            m.VolumeMount(name="registry-credentials", mount_path="/kaniko/.docker", read_only=True),
        ],
        # Root with the three capabilities that unpacking a base needs: Pod Security `baseline`, not privileged.
        pod_security_context=m.PodSecurityContext(
            run_as_user=0, seccomp_profile=m.SeccompProfile(type="RuntimeDefault")
        ),
        security_context=m.SecurityContext(
            allow_privilege_escalation=False,
            capabilities=m.Capabilities(drop=["ALL"], add=["CHOWN", "DAC_OVERRIDE", "FOWNER"]),
        ),
        service_account_name=f"seatrial-{NAME}",
        automount_service_account_token=False,
        executor=executor(),
    )


def arguments() -> list[str]:
    """Kaniko's command line; the local builder takes the same."""
    return [
        f"--context=tar://{IO}/in/context",
        "--dockerfile=Dockerfile",
        f"--destination={reference('inputs', 'repository')}:{reference('inputs', 'tag')}",
        f"--digest-file={IO}/out/params/digest",
        "--cache=false",
        "--compressed-caching=false",
        "--image-format=oci",
        "--push-retry=3",
        "--image-download-retry=3",
        "--log-format=json",
    ]
