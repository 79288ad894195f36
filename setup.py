"""All is in pyproject.toml but this: the migrations, beside the package in a checkout, are installed inside it."""

from setuptools import find_packages, setup

MIGRATIONS = {"metastore.migrations": "migrations", "metastore.migrations.versions": "migrations/versions"}

setup(packages=[*find_packages(include=["metastore", "metastore.*"]), *MIGRATIONS], package_dir=MIGRATIONS)
