"""The life of a release: installed, upgraded, rolled back and uninstalled by the real helm."""

import pytest
import yaml

from sim_cluster import tools
from tests.chart import rendering as chart

MINIMAL = chart.ROOT / "crds" / "examples" / "minimal.yaml"
DEFINITIONS = ("servingfleets.fleetline.dev", "acceleratorprofiles.fleetline.dev")


def arguments(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


def apply_fleet(release):
    names = [f"customresourcedefinition/{name}" for name in DEFINITIONS]
    release.cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    release.cluster.kubectl("apply", "--namespace", release.namespace, "-f", str(MINIMAL))


def fleet_exists(release):
    return release.cluster.exists("servingfleet", "chat", "--namespace", release.namespace)


def test_installed_it_serves_fleets_and_says_what_to_do_next(release):
    notes = release.install()
    apply_fleet(release)

    assert "kubectl get servingfleets --all-namespaces --output wide" in notes
    assert release.history() == [(1, "deployed")]
    assert fleet_exists(release)
    assert release.deployment()["spec"]["replicas"] == 1


def test_everything_on_is_accepted_by_the_api_server(release):
    needs_foreign_definitions = {
        "serviceMonitor": {"enabled": False},
        "prometheusRule": {"enabled": False},
    }

    release.install(chart.merged(chart.EVERYTHING, needs_foreign_definitions))

    assert release.cluster.exists("networkpolicy", "fleetline", "--namespace", release.namespace)
    assert release.cluster.exists(
        "poddisruptionbudget", "fleetline", "--namespace", release.namespace
    )


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({}, id="defaults"),
        pytest.param(chart.EVERYTHING, id="everything on"),
        pytest.param({"watchNamespaces": ["default"]}, id="a namespace"),
    ],
)
def test_the_api_server_knows_every_field_of_every_object(release, values):
    objects = chart.render(values, namespace=release.namespace)
    known = [one for one in objects if "monitoring.coreos.com" not in one["apiVersion"]]

    # the test pod is admitted only when its account is there
    release.cluster.kubectl("create", "serviceaccount", "fleetline", "-n", release.namespace)

    code, output = strictly(release, known)

    assert code == 0, output


def test_the_api_server_would_name_a_field_that_it_does_not_know(release):
    wrong = chart.one(chart.render(namespace=release.namespace), "Deployment")
    wrong["spec"]["template"]["spec"]["automountServiceAccountTokn"] = True

    code, output = strictly(release, [wrong])

    assert code == 1
    assert 'unknown field "spec.template.spec.automountServiceAccountTokn"' in output


def strictly(release, objects):
    return release.cluster.run(
        tools.kubectl(),
        *("apply", "--dry-run=server", "--validate=strict", "-f", "-"),
        stdin=yaml.safe_dump_all(objects),
    )


def test_an_upgrade_changes_what_was_asked_for_and_keeps_fleets(release):
    release.install()
    apply_fleet(release)

    release.upgrade({"logLevel": "debug", "watchNamespaces": [release.namespace]})

    assert release.history()[-1] == (2, "deployed")
    assert "--log-level=debug" in arguments(release.deployment())
    assert release.cluster.exists("role", "fleetline", "--namespace", release.namespace)
    assert fleet_exists(release)


def test_a_rollback_brings_the_settings_back_and_keeps_fleets(release):
    release.install()
    apply_fleet(release)
    before = arguments(release.deployment())
    release.upgrade({"logLevel": "debug", "watchNamespaces": [release.namespace]})

    release.rollback(1)

    assert arguments(release.deployment()) == before
    assert not release.cluster.exists("role", "fleetline", "--namespace", release.namespace)
    assert fleet_exists(release)


def test_fleets_survive_an_uninstall_and_a_new_release_takes_them_over(release):
    release.install()
    apply_fleet(release)

    release.uninstall()

    assert not release.cluster.exists("deployment", "fleetline", "--namespace", release.namespace)
    assert not release.cluster.exists("clusterrole", "fleetline")
    assert fleet_exists(release)

    release.install()

    assert fleet_exists(release)


def test_without_keep_an_uninstall_takes_everything(release):
    release.install({"crds": {"keep": False}})

    release.uninstall()

    release.cluster.kubectl(
        "wait", "--for=delete", "--timeout=30s", *(f"crd/{name}" for name in DEFINITIONS)
    )
    assert not release.cluster.exists("crd", DEFINITIONS[0])


def test_a_deleted_fleet_waits_for_nobody_when_the_operator_is_gone(release):
    release.install()
    apply_fleet(release)
    release.uninstall()

    release.cluster.kubectl(
        "delete", "servingfleet", "chat", "--namespace", release.namespace, "--timeout=10s"
    )

    assert not fleet_exists(release)
