# Undine. CMake builds everything (see CMakePresets.json); this file saves typing and installs the
# packages a target needs (tools/packages.sh: only what is missing).
#
#   make            build/undine and build/libundine.so
#                   (MPI=1 with MPI, for more than one machine: docs/cluster.md; ARCH=x86-64-v3
#                   for other processors than this one)
#   make demo       a dam break by the adaptive method, simulated and rendered to out/dam/movie.mp4
#                   (SCENE=scenes/x.lua another scene; SET="detail.finest=32 frames.count=48";
#                   RENDER="--width 1280 --height 720 --samples 8" larger pictures)
#   make test       the tests for everyday work, in two minutes
#   make check      all tests: gcc, clang, sanitizers (CHECK="gcc asan" only those)
#   make validate   the slower comparisons with outside numbers and programs (ParaView, Blender), to
#                   docs/validation.md (VALIDATE="standing_wave --method tet" only that)
#   make fuzz       fuzzes the readers of files, each for FUZZ=60 seconds
#   make bench      timings beside Mantaflow (BENCH="--cells 64 --frames 24 --no-mantaflow"), and of
#                   octree beside uniform, which fails above 2.9 times the time a particle
#   make bench-parts     parts of a step by themselves: mesh, projection, resizing, surface, files
#   make bench-solvers   the linear solvers on dumped systems, beside PETSc and hypre
#                   (BENCH="--cells tet=46,128 uniform=54"; all sizes take an hour and 10 GB)
#   make install    into PREFIX (/usr/local), below DESTDIR if set
#   make clean      removes build/

PREFIX ?= /usr/local
SCENE ?= scenes/dam.lua
# with the build it takes less than three minutes on two processors
SET ?= $(if $(filter scenes/dam.lua,$(SCENE)),method=tet detail.finest=80 frames.count=48)
RENDER ?= --width 960 --height 540 --samples 4
BENCH ?=
VALIDATE ?=
FUZZ ?= 60
MPI ?= 0
ARCH ?= native

name = $(basename $(notdir $(SCENE)))
sets = $(foreach set,$(SET),--set '$(set)')
build = cmake --build --preset release
# tests are configured where their library is there, and built by `make check` only
configure = cmake --preset release -DCMAKE_INSTALL_PREFIX='$(PREFIX)' -DUNDINE_ARCH='$(ARCH)' \
	-DUNDINE_MPI=$(if $(filter-out 0 OFF off no,$(MPI)),ON,OFF) \
	-DUNDINE_TESTS=$$(pkg-config --exists cmocka && echo ON || echo OFF) >/dev/null

.PHONY: all demo test check validate fuzz bench bench-parts bench-solvers install clean

all:
	@tools/packages.sh core $(if $(filter-out 0 OFF off no,$(MPI)),mpi)
	@tools/packages.sh viewer || echo "Without npm there is no viewer; the rest is built."
	@$(configure)
	@$(build) --target undine_app undine_shared

demo:
	@tools/packages.sh core film
	@tools/packages.sh viewer || echo "Without npm there is no viewer; the rest is built."
	@$(configure)
	@$(build) --target undine_app undine_shared
	build/undine run $(SCENE) -o out/$(name) $(sets)
	build/undine render out/$(name) -o out/$(name)/movie.mp4 $(RENDER)
	@echo
	@echo "The film:        out/$(name)/movie.mp4"
	@echo "In the browser:  build/undine view out/$(name)"
	@echo "What it holds:   build/undine info out/$(name)"
	@echo "In ParaView:     paraview out/$(name)/surface.pvd   (and particles.pvd)"
	@echo "Your own scene:  copy $(SCENE), change it, build/undine run it"

test:
	@tools/packages.sh core test
	@cmake --preset gcc -DUNDINE_TESTS=ON >/dev/null
	@cmake --build --preset gcc
	@ctest --test-dir build/gcc -j $$(nproc) -LE 'timing|slow' --output-on-failure

check:
	@tools/packages.sh core film test
	@tools/packages.sh mpi || echo "Without MPI its tests are skipped."
	@tools/check.sh

validate:
	@tools/packages.sh core film test
	@tools/packages.sh validate || echo "Without ParaView and Blender their cases are skipped."
	@$(configure)
	@$(build) --target undine_app undine_shared
	@tools/validate.sh build/undine $(VALIDATE)

fuzz:
	@tools/packages.sh core test
	@tools/fuzz.sh $(FUZZ)

bench:
	@tools/packages.sh core bench
	@$(configure)
	@$(build) --target undine_app undine_shared
	@python3 bench/dam.py build/undine $(BENCH)
	@python3 bench/particle.py build/undine --cells 64 --repeat 5 --bound 2.9

bench-parts:
	@tools/packages.sh core test
	@$(configure)
	@$(build)
	@ctest --test-dir build -L timing -V -j 1 | sed -n 's/^[0-9]*: //p'

bench-solvers:
	@tools/packages.sh core test petsc
	@$(configure)
	@$(build)
	@cmake --preset petsc >/dev/null
	@cmake --build --preset petsc --target bench_solvers_petsc
	@python3 bench/solvers.py build --petsc build/petsc $(BENCH)

install: all
	@cmake --install build

clean:
	rm -rf build
