# The project's commands; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

bin := .venv/bin
# Three on two cores: tests wait for PostgreSQL, disks and Java as long as they compute.
WORKERS ?= 3
# Options for pytest, for example: make test-fast ARGS="-k locks"
ARGS ?=
quick := not slow and not long and not robustness
pytest := $(bin)/python -m pytest -n $(WORKERS) $(ARGS)
cover := --cov=metastore --cov-branch --cov-report=

.PHONY: interop-auth wheel spark-versions spark-clients dbt-check manifests deploy-check installs-check upgrade-check cluster-check images-check interop interop-tables interop-engine interop-yarn interop-upstream interop-s3 differential robustness-tables help setup run demo test test-all test-fast checks tests slow-tests coverage model lint fmt types layers idl idl-check docs docs-check bench bench-acid bench-sustained robustness soak fuzz lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Prepare .venv (and Java 17 where allowed); does nothing when nothing changed
	@bash tools/setup.sh

run: setup ## Serve on Thrift 9083 and HTTP 9084 with an embedded PostgreSQL and a warehouse in .data/
	@exec $(bin)/metastore serve --data-dir .data $(ARGS)

demo: setup ## The tour on real data, with a server of its own; exits 0 only if every check holds
	@$(bin)/python -m tests.demo.tour $(ARGS)

# Linters beside the tests: these wait for PostgreSQL and Java as long as they compute.
test: setup ## What each change is tried with: linters, and all tests but the slow ones (twelve minutes on two cores)
	@$(MAKE) --no-print-directory -j2 checks tests

checks: lint types layers idl-check docs-check

# COVER=1: what they cover is written down beside, for `make coverage` to judge.
tests: setup
	@$(if $(COVER),$(bin)/coverage erase)
	@$(pytest) -m "$(quick)" $(if $(COVER),$(cover))

test-all: setup ## What CI runs besides: slow tests beside three minutes of the soak, and what the tests cover
	@$(MAKE) --no-print-directory -j2 -Otarget MINUTES=3 ARGS= soak slow-tests
	@$(MAKE) --no-print-directory coverage

slow-tests: setup
	@$(pytest) -m "slow and not long and not robustness"

test-fast: setup ## Unit tests and scripts on the model: seconds, no database, no Java
	@$(pytest) tests/unit tests/model tests/scripts -m "not spark"

model: setup ## Random stories about transactions, told to a model and to a server; many (STORIES=2000)
	@MODEL_EXAMPLES=$${STORIES:-2000} $(bin)/python -m pytest -n0 $(ARGS) tests/model

# Judged where decisions are made, to the last branch, and of everything that runs without Java. Once: it is of one state.
coverage: .coverage
	@mv .coverage .coverage-judged
	@$(bin)/coverage report --data-file=.coverage-judged --omit='metastore/spark/*' --skip-covered --fail-under=90 --show-missing > .coverage-report.txt || { tail -60 .coverage-report.txt; exit 1; }
	@tail -2 .coverage-report.txt
	@$(bin)/coverage report --data-file=.coverage-judged --include='metastore/**/rules.py,metastore/**/rules/*,metastore/acid/*' --fail-under=100

.coverage: | setup
	@$(pytest) $(cover) -m "$(quick) and not spark" tests/unit tests/model tests/scripts tests/integration

lint: setup ## ruff: what it finds, and how it formats; subjects of new commits
	@$(bin)/ruff check . && $(bin)/ruff format --check .
	@$(bin)/python -m tests.docs.commits

fmt: setup ## Let ruff repair and format what it can
	@$(bin)/ruff check --fix . && $(bin)/ruff format .

types: setup ## mypy, strict
	@$(bin)/mypy metastore migrations

layers: setup ## import-linter: who may import whom
	@$(bin)/lint-imports --no-cache --verbose >.layers.txt 2>&1 || { cat .layers.txt; exit 1; }
	@grep -E '^Contracts:' .layers.txt

idl: setup ## Regenerate metastore/thrift_gen from thrift_idl/
	@bash tools/idl.sh

idl-check: setup
	@bash tools/idl.sh --check

docs: setup ## Write the generated pages anew: docs/reference, the index of decisions, the chart's README, the table of performance.md
	@$(bin)/python -m tests.docs.reference

docs-check: setup
	@$(bin)/python -m tests.docs.reference --check

bench: setup ## The benchmarks, beside their peers
	@$(bin)/python -m benchmarks $(ARGS)

bench-acid: setup ## Planning, reading and writing ACID tables in Spark, beside plain ORC files
	@for name in planning matrix deletes writes; do $(bin)/python -m benchmarks.acid_$$name $(ARGS) || exit 1; done
	@$(bin)/python -m benchmarks.compaction $(ARGS)

bench-sustained: setup ## Ten minutes of mixed work at full speed: does anything grow?
	@$(bin)/python -m benchmarks.sustained $(ARGS)

# Without a seed: the first twenty, eight in the shape of the chart, and servers with bugs planted in them, which must be found.
robustness: setup ## Histories with killed servers, workers and databases, judged by a checker (SEED=17 | SEEDS=1-200, CHART=1)
	@$(bin)/python -m tests.robustness $(if $(SEED)$(SEEDS),--seeds $(or $(SEED),$(SEEDS))) $(if $(CHART),--chart)
	@$(if $(SEED)$(SEEDS)$(CHART),,$(bin)/python -m tests.robustness --chart --seeds 1-8)
	@$(if $(SEED)$(SEEDS),,$(bin)/python -m pytest -n 0 -m "long or robustness" $(ARGS))

interop: setup ## Hive's own Java clients 2.3.10, 3.1.3 and 4.x against the server, with and without TLS (fetches them with Maven)
	@$(bin)/python -m pytest -n0 tests/interop/clients/sessions.py tests/interop/clients/tls.py $(ARGS)

interop-auth: setup ## Logins by Kerberos, token and password with Hive 2.3.10 to 4.2.0 and PyIceberg (fetches them with Maven and pip)
	@$(bin)/python -m pytest -n0 tests/interop/clients/logins.py $(ARGS)

interop-tables: setup ## Hive 4.0.1 and Trino 380 read what we write and compact, we what they write, and Hive's queries (RANDOM_TABLES=1-200; fetches them with Maven)
	@$(bin)/python -m pytest -n0 tests/interop/tables/vectors.py tests/interop/tables/stories.py tests/interop/tables/every_type.py tests/interop/tables/lines.py tests/interop/tables/hive_queries.py tests/interop/tables/random_tables.py $(ARGS)

interop-engine: setup ## Statements of Hive 4.0.1's own SQL engine on the server, and its compactor beside ours (fetches it with Maven)
	@$(bin)/python -m pytest -n0 tests/interop/engine/statements.py tests/interop/engine/compactor.py $(ARGS)

interop-yarn: setup ## Compactions submitted to a YARN of one node (fetches it with Maven)
	@$(bin)/python -m pytest -n0 tests/interop/yarn/compactions.py $(ARGS)

interop-upstream: setup ## In front of the real Hive metastores 2.3.10 and 4.2.0, with Spark and Hive's clients before it (fetches them with Maven)
	@$(bin)/python -m pytest -n0 tests/interop/upstream/real_metastores.py $(ARGS)

differential: setup ## The same generated calls to Hive's metastores 2.3.10 and 4.0.1 and to ours, answers compared (MOST=100 SEED=1 ARGS="--only .*function.* | --record"; fetches them with Maven)
	@$(bin)/python -m tests.differential --most $(or $(MOST),100) --seed $(or $(SEED),1) $(ARGS)

interop-s3: setup ## ACID tables whose warehouse is on S3: an S3 server here, S3A for Spark (fetches them with pip and Maven)
	@bash tools/interop_s3.sh
	@.data/interop/s3/python/bin/python -m pytest -n0 tests/interop/s3/objects.py tests/interop/s3/tables.py tests/interop/s3/in_place.py tests/interop/s3/catalog.py tests/interop/s3/drop_in.py $(ARGS)

soak: setup ## Everything at once for half an hour, harmed without end and judged at the end (MINUTES=3 SEED=7)
	@$(bin)/python -m tests.robustness.soak --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1) $(ARGS)

# Without a seed: the first eight.
robustness-tables: setup ## ACID tables: random stories, kill -9 at every point of a commit, lost executors, concurrent writers (SEED=17 | SEEDS=1-50)
	@TABLE_SEEDS=$(or $(SEED),$(SEEDS),1-8) $(bin)/python -m pytest -n0 -s tests/acceptance/tables $(ARGS)
	@$(if $(SEED)$(SEEDS),,RANDOM_TABLES=$(or $(RANDOM_TABLES),1-200) $(bin)/python -m pytest -n0 tests/acceptance/hive_reader/test_random_tables.py $(ARGS))

spark-versions: setup ## The ACID tests on Spark 4.0 to 4.3, half an hour each (SPARKS="4.1" TESTS="..."; fetches them with pip)
	@bash tools/spark_versions.sh $(ARGS)

spark-clients: setup ## ACID tables through spark-sql, JDBC and Spark Connect (SPARKS="4.2"; fetches Spark with pip)
	@SPARKS="$${SPARKS:-4.3}" TESTS="tests/interop/spark_clients/clients.py tests/interop/spark_clients/statements.py" bash tools/spark_versions.sh $(ARGS)

wheel: setup ## A wheel in dist/ with the catalog's jar for Spark 4.0 to 4.3 (SPARKS="4.2 4.3"; fetches Spark with pip)
	@bash tools/wheel.sh

dbt-check: setup ## A dbt project on ACID tables, twice and anew, by dbt-spark (fetches it with pip)
	@bash tools/dbt_check.sh $(ARGS)

fuzz: setup ## Mutated messages, expressions, filters, id lists, names and files, for minutes (FUZZ_SECONDS=600 FUZZ_SEED=7 | FUZZ_INPUT=7:orc:123)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-300} FUZZ_SEED=$${FUZZ_SEED:-1} $(bin)/python -m pytest -n0 -s --timeout 0 $(ARGS) tests/fuzz

manifests: setup ## Render the Helm chart's values of ci/ into deploy/k8s and deploy/sidecar (builds helm with Go, once)
	@bash tools/helm.sh

deploy-check: setup ## Whether deploy/k8s is what helm renders, and what Kubernetes takes
	@bash tools/helm.sh --check
	@$(bin)/python -m pytest -q -n0 tests/deploy tests/deploy/refusals.py $(ARGS)

cluster-check: setup ## Every shape of the chart against a real API server (builds it with Go, once: half an hour)
	@bash tools/helm.sh --check
	@bash tools/apiserver.sh
	@$(bin)/python -m pytest -q -n0 tests/deploy/api_server.py $(ARGS)

images-check: setup ## Both images without Docker: their Dockerfiles replayed into a root of our own, started there (root and debootstrap)
	@$(bin)/python -m pytest -n0 -s tests/deploy/images.py $(ARGS)

installs-check: setup ## Base and [server] from the built wheel in empty environments, on Python 3.11 to 3.13 as far as they are there
	@$(bin)/python -m pytest -n0 -s tests/deploy/installs.py $(ARGS)

upgrade-check: setup ## The integration tests of the release before, on this release's schema (RELEASE=commit TESTS="tests/integration/locks")
	@bash tools/upgrade_check.sh $(ARGS)

lock: ## Write constraints.txt anew with the newest versions that pyproject.toml allows, and that of the images
	@bash tools/lock.sh

clean: ## Remove .venv and the caches; .data/ stays
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* .layers.txt build dist *.egg-info
