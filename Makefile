# mtc: `make help` lists the targets.

BUILD     ?= build
PREFIX    ?= /usr/local
FLEX      ?= flex
BISON     ?= bison
PROTOC_C  ?= protoc-c
PYTHON    ?= python3
# What pytest makes of tests is kept, also where the environment says that Python shall keep nothing: it is 10 s of each worker.
PYTEST    ?= env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(abspath $(BUILD))/pycache $(PYTHON) -m pytest
# Tests run side by side, one worker a processor, where pytest-xdist is installed.
WORKERS   ?= $(shell $(PYTHON) -c 'import xdist, os; print("-n", len(os.sched_getaffinity(0)))' 2>/dev/null)
CFLAGS    ?= -O2 -g
SANITIZE  := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

WARNINGS         := -Wall -Wextra -Wpedantic
# What the compiler folds and the runtime computes is what programs compute: none fuses a * b + c unasked.
ARITHMETIC       := -ffp-contract=off
COMPILER_FLAGS    = -std=c11 -D_POSIX_C_SOURCE=200809L $(WARNINGS) $(ARITHMETIC) -Icompiler -I. -Iruntime -I$(BUILD)/gen
RUNTIME_FLAGS     = -std=c11 -D_XOPEN_SOURCE=700 $(WARNINGS) $(ARITHMETIC) -fPIC -fvisibility=hidden -Iruntime -Ikernels_lib -I$(BUILD)/gen

SOURCES    := $(wildcard compiler/*.c compiler/*/*.c compiler/*/*/*.c)
GENERATED  := $(BUILD)/gen/parser.c $(BUILD)/gen/lexer.c $(BUILD)/gen/onnx.pb-c.c
# What mtc has in common with the programs that it makes: how files are opened, texts shown and encoded, and logs, which mtc plot reads.
SHARED     := $(patsubst %,runtime/base/%.c,json common file files ending input mapped parallel meter line hash safetensors zip axes) \
              $(wildcard runtime/tokenizer/*.c)
OBJECTS     = $(patsubst %.c,$(BUILD)/obj/%.o,$(SOURCES) $(SHARED)) $(GENERATED:$(BUILD)/%.c=$(BUILD)/obj/%.o)
# A program's device layer, one of these, is compiled together with it; runtime/embed/ with libraries of the prediction alone.
DEVICES     = $(wildcard runtime/base/device_*.c)
RUNTIME     = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(DEVICES) runtime/embed/%,$(wildcard runtime/*.c runtime/*/*.c))) $(MESSAGES)
# The messages of ONNX files, which mtc and its programs have in common.
MESSAGES    = $(BUILD)/obj/gen/onnx.pb-c.o
C_FILES     = $(wildcard compiler/*.[ch] compiler/*/*.[ch] compiler/*/*/*.[ch] runtime/*.[ch] runtime/*/*.[ch] kernels_lib/*.h kernels_lib/*/*.h kernels_lib/*/*.cuh \
                         bench/*.cu tools/*.c)

# What mtc is linked with: of protocol buffers the archive, where there is one, so that mtc runs where they are not installed.
PROTOBUF_C := $(if $(filter /%,$(shell $(CC) -print-file-name=libprotobuf-c.a)),-l:libprotobuf-c.a,-lprotobuf-c)
LIBRARIES   = $(PROTOBUF_C) -lm -ldl -lpthread

# One short line for each file; `make V=1` shows the commands.
ifndef V
.SILENT:
endif

all: $(BUILD)/mtc $(BUILD)/libmtc_runtime.a $(BUILD)/operators.json  ## build the compiler and the runtime library (default)

$(BUILD)/mtc: $(OBJECTS)
	echo "  link   $@"
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBRARIES)

# The functions of the language, for the Python package.
$(BUILD)/operators.json: $(BUILD)/mtc
	$< --operators --json > $@

# Written anew, so that an object whose source is gone leaves the library too. PROGRAM_FLAGS: what a program has to be compiled
# with that the library is linked into; mtc reads them there.
$(BUILD)/libmtc_runtime.a: $(RUNTIME) Makefile
	echo "  ar     $@"
	$(RM) $@
	$(AR) rcs $@ $(RUNTIME)
	$(RM) $(@:.a=.flags)
	$(if $(PROGRAM_FLAGS),echo "$(PROGRAM_FLAGS)" > $(@:.a=.flags))

$(BUILD)/obj/compiler/%.o: compiler/%.c
	echo "  cc     $<"
	mkdir -p $(@D)
	$(CC) $(COMPILER_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/obj/runtime/%.o: runtime/%.c
	echo "  cc     $<"
	mkdir -p $(@D)
	$(CC) $(RUNTIME_FLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# What flex writes does not pass our own warnings.
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	echo "  cc     $<"
	mkdir -p $(@D)
	$(CC) $(COMPILER_FLAGS) $(CFLAGS) -Icompiler/front -Wno-unused-function -Wno-sign-compare -MMD -MP -c -o $@ $<

$(MESSAGES): $(BUILD)/gen/onnx.pb-c.c runtime/onnx/unlinked.h
	echo "  cc     $<"
	mkdir -p $(@D)
	$(CC) $(RUNTIME_FLAGS) $(CFLAGS) -include runtime/onnx/unlinked.h -MMD -MP -c -o $@ $<

# The headers that flex, bison and protoc-c write must exist before the first compilation of what includes them.
$(OBJECTS) $(RUNTIME): | $(GENERATED)

$(BUILD)/gen/parser.c $(BUILD)/gen/parser.h &: compiler/front/parser.y
	echo "  bison  $<"
	mkdir -p $(@D)
	$(BISON) -Wall -Werror --defines=$(BUILD)/gen/parser.h -o $(BUILD)/gen/parser.c $<

$(BUILD)/gen/lexer.c $(BUILD)/gen/lexer.h &: compiler/front/lexer.l
	echo "  flex   $<"
	mkdir -p $(@D)
	$(FLEX) --header-file=$(BUILD)/gen/lexer.h -o $(BUILD)/gen/lexer.c $<

$(BUILD)/gen/onnx.pb-c.c $(BUILD)/gen/onnx.pb-c.h &: runtime/onnx/onnx.proto
	echo "  protoc $<"
	mkdir -p $(@D)
	command -v $(PROTOC_C) >/dev/null || { echo "There is no '$(PROTOC_C)' here: tools/install-deps installs it (protobuf-c-compiler)" >&2; exit 1; }
	$(PROTOC_C) --proto_path=$(<D) --c_out=$(BUILD)/gen $<

-include $(OBJECTS:.o=.d) $(RUNTIME:.o=.d)

check: all  ## run the tests that need no GPU
	$(PYTEST) -q -m "not gpu" $(WORKERS) tests

check-gpu: all  ## run the tests that need a GPU; CONTINUE=1: without those that passed when it was cut off
	$(PYTEST) -q -m gpu $(WORKERS) $(if $(WORKERS),--dist loadgroup) --tally $(BUILD)/check-gpu.tally $(if $(CONTINUE),--continue) tests

bench: all  ## measure kernels and models
	bench/run
	bench/vision
	bench/language
	bench/python

bless: all  ## rewrite the expected outputs of the tests and show what changed
	$(PYTEST) -q -m "not gpu" tests --bless
	git diff --stat -- tests docs

format:  ## rewrite our C, C++ and CUDA files with clang-format
	clang-format -i $(C_FILES)

lint: all  ## check format, warnings of gcc and clang, clang-tidy, mypy, arrows between rooms, generated code
	tools/lint

asan:  ## build build/asan/mtc with AddressSanitizer and UndefinedBehaviorSanitizer, which makes programs with them
	$(MAKE) BUILD=$(BUILD)/asan CFLAGS="$(SANITIZE)" PROGRAM_FLAGS="$(SANITIZE)" all

FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# The harnesses, tests/fuzz/NAME_fuzz.c, by what they are linked with; and programs that take --seconds.
FUZZ_COMPILER := front programs source plot pickle onnx
FUZZ_RUNTIME  := data checkpoint gzip cifar10 restore tokenizer
FUZZ_PROGRAMS := tools/fuzz_models tools/fuzz_gpu

fuzz: all  ## fuzz the compiler and the runtime's readers under the sanitizers, each for FUZZ_SECONDS (600)
	$(MAKE) BUILD=$(BUILD)/fuzz CC=clang CFLAGS="$(FUZZ_FLAGS)" fuzzers
	tools/fuzz $(patsubst %,$(BUILD)/fuzz/%_fuzz,$(FUZZ_COMPILER) $(FUZZ_RUNTIME)) $(FUZZ_PROGRAMS)

fuzzers: $(patsubst %,$(BUILD)/%_fuzz,$(FUZZ_COMPILER) $(FUZZ_RUNTIME))

$(patsubst %,$(BUILD)/%_fuzz,$(FUZZ_COMPILER)): $(BUILD)/%: tests/fuzz/%.c $(OBJECTS)
	$(CC) $(COMPILER_FLAGS) -D_GNU_SOURCE $(CFLAGS) -fsanitize=fuzzer -o $@ $(filter-out %/compiler/main.o,$^) $(LIBRARIES)

$(patsubst %,$(BUILD)/%_fuzz,$(FUZZ_RUNTIME)): $(BUILD)/%: tests/fuzz/%.c runtime/base/device_cpu.c $(BUILD)/libmtc_runtime.a
	$(CC) $(RUNTIME_FLAGS) $(CFLAGS) -fsanitize=fuzzer -o $@ $^ -lm -ldl -lpthread

# Installed, the library's folder looks like the source tree: the compiler finds kernels and runtime in either.
LIBRARY = $(DESTDIR)$(PREFIX)/lib/mtc
MAN     = $(DESTDIR)$(PREFIX)/share/man/man1/mtc.1
HEADER  = $(DESTDIR)$(PREFIX)/include/mtc_net.h
BASH    = $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mtc

install: install-toolchain  ## install under $(DESTDIR)$(PREFIX)
	install -d $(dir $(MAN)) $(dir $(BASH)) $(dir $(HEADER))
	install -m 644 runtime/embed/mtc_net.h $(HEADER)
	tools/man $(BUILD)/mtc > $(MAN)
	tools/completion $(BUILD)/mtc > $(BASH)

# What compiling a model takes; the Python package carries the same.
install-toolchain: all
	install -d $(DESTDIR)$(PREFIX)/bin $(LIBRARY)
	install $(BUILD)/mtc $(DESTDIR)$(PREFIX)/bin/mtc
	install -m 644 $(BUILD)/libmtc_runtime.a $(BUILD)/operators.json $(LIBRARY)
	find runtime kernels_lib -type f -name '*.[chd]*' -exec install -D -m 644 {} $(abspath $(LIBRARY))/{} \;

wheel: all  ## make the Python package, with mtc in it: build/wheel/mtc-VERSION-py3-none-linux_MACHINE.whl
	$(PYTHON) -c 'import setuptools, wheel, pip' 2>/dev/null || { echo "make wheel needs pip, setuptools and wheel for $(PYTHON):" \
	  "apt-get install python3-pip python3-setuptools python3-wheel, or $(PYTHON) -m pip install setuptools wheel" >&2; exit 1; }
	echo "  wheel  $(BUILD)/wheel"
	$(RM) -r $(BUILD)/wheel
	$(PYTHON) -m pip --disable-pip-version-check wheel --quiet --no-build-isolation --no-deps --wheel-dir $(BUILD)/wheel ./python

uninstall:  ## remove what install wrote
	$(RM) -r $(LIBRARY)
	$(RM) $(DESTDIR)$(PREFIX)/bin/mtc $(MAN) $(BASH) $(HEADER)

clean:  ## remove build/
	$(RM) -r $(BUILD)

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

.PHONY: all check check-gpu bench bless format lint asan fuzz fuzzers install install-toolchain wheel uninstall clean help
.DELETE_ON_ERROR:
