# The steps of .ci/run, one a recipe; `just` alone runs them all.

all:
    .ci/run

setup:
    .ci/run --only setup

fmt:
    .ci/run --only fmt

clippy:
    .ci/run --only clippy

doc:
    .ci/run --only doc

test:
    .ci/run --only test

loom:
    .ci/run --only loom

fuzz:
    .ci/run --only fuzz

msrv:
    .ci/run --only msrv

targets:
    .ci/run --only targets

tree:
    .ci/run --only tree

release:
    .ci/run --only release

quickstart:
    .ci/run --only quickstart

stress:
    .ci/run --only stress

groups:
    .ci/run --only groups

interop-embedded:
    .ci/run --only interop-embedded

interop-real:
    .ci/run --only interop-real

compare:
    .ci/run --only compare
