# The two commands of the README are `make demo` and `make test`; each does all its own set-up.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BACKEND ?= memory

.PHONY: demo test slow conformance check lock clean

demo: $(VENV)/.installed ## Apply a ServingFleet on a local cluster and watch replicas follow the load
	$(BIN)/fleetline demo --backend $(BACKEND)

test: $(VENV)/.installed ## Run the tests (under 10 minutes on two cores)
	$(BIN)/python -m pytest -n 2 -m "not slow and not controlplane"

slow: $(VENV)/.installed ## The slower tests; the one of Ray beside its own packages, which are large
	$(BIN)/python -m pytest -n 2 -m "slow and not controlplane"
	test -d build/ray || $(BIN)/python -m pip install --quiet --disable-pip-version-check --target build/ray ray
	PYTHONPATH=build/ray $(BIN)/python -m pytest -m slow tests/replay/test_ray.py

conformance: $(VENV)/.installed ## The tests of clients on the real control plane (Go 1.26; the first build takes ten minutes)
	$(BIN)/python -m sim_cluster.controlplane.build
	SIM_BACKEND=controlplane $(BIN)/python -m pytest -n 2 -m "not slow" tests/conformance tests/crd
	$(BIN)/python -m pytest -n 2 -m "controlplane and not slow" tests

check: $(VENV)/.installed ## Formatting, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@echo "installing Python packages, fetching kubectl and Prometheus (once; a minute or two) ..."
	@$(BIN)/python -m sim_cluster.tools kubectl prometheus > /dev/null 2>&1 & \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes \
		-r requirements.lock; \
	installed=$$?; wait; exit $$installed
	-@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null # pip would use one core for it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

lock: ## Resolve the dependencies anew, with hashes: for development, and for the image
	uv pip compile pyproject.toml --extra dev --python-version 3.11 --universal --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file requirements.lock
	uv pip compile pyproject.toml --constraint requirements.lock --python-version 3.11 --universal \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet \
		--output-file operator/requirements.lock

clean: ## Remove everything that the commands above made
	rm -rf $(VENV) build .tools .pytest_cache .mypy_cache .ruff_cache
