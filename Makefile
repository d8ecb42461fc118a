# SPDX-License-Identifier: MIT
# `make help` lists what can be built.  Building installs nothing and needs no root.

CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG ?= clang
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
FUZZ_SECONDS ?= 600
BPFTOOL ?= $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool)

# Sanitized objects live beside the plain ones, in a folder named after the sanitizers.
comma := ,
BUILD := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
	-Wformat=2 -Werror
# gcc's own sanitizer checks make it see null formats and the like that are not there.
WARN += $(if $(SAN),-Wno-error)
PKGS := libbpf libelf zlib libcap libcjson
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
# The empty value allows a file to say `#define _GNU_SOURCE` for itself as well.
DIALECT := -std=gnu17 -D_GNU_SOURCE=
ALL_CFLAGS = $(DIALECT) $(WARN) -Isrc -Ibuild $(PKG_CFLAGS) $(CFLAGS) $(SANFLAGS)
ALL_LDFLAGS = $(LDFLAGS) $(SANFLAGS)
FUZZFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined

# Asked once, when the first recipe needs it: `make help` and `make clean` work without it.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PKGS)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PKGS)) -lm -lpthread)$(PKG_LIBS)

SRCS := $(sort $(wildcard src/*/*.c))
BPF_SRCS := $(filter %.bpf.c,$(SRCS))
SRCS := $(filter-out %.bpf.c,$(SRCS))
OBJS := $(SRCS:src/%.c=$(BUILD)/obj/%.o)
MAIN := $(BUILD)/obj/cli/main.o
CORE := $(BUILD)/core.a
FUZZ_OBJS := $(patsubst src/%.c,build/fuzz/obj/%.o,$(filter-out src/cli/%,$(SRCS)))
SKELS := $(BPF_SRCS:src/bpf/%.bpf.c=build/bpf/%.skel.h)
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test-*.c))
FUZZ := $(patsubst tests/fuzz/%.c,build/fuzz/%,$(wildcard tests/fuzz/fuzz-*.c))
PAGES := $(patsubst docs/man/%.in,build/man/%,$(wildcard docs/man/*.in))
COMPLETIONS := build/completion/longpole.bash build/completion/longpole.zsh \
	build/completion/longpole.fish

bpf_arch := $(patsubst aarch64,arm64,$(patsubst x86_64,x86,$(shell uname -m)))
# clang -target bpf does not search the multiarch folder, where asm/types.h lives.
BPF_CFLAGS = -target bpf -mcpu=v3 -O2 -g -Wall -Werror -D__TARGET_ARCH_$(bpf_arch) -Isrc \
	-idirafter /usr/include/$(shell uname -m)-linux-gnu

.PHONY: all help demo check lint format unit fuzz fuzz-build bench bench-culprits install \
	uninstall clean tools-present FORCE
.DELETE_ON_ERROR:
.SUFFIXES:

all: $(BUILD)/longpole

help:
	@echo 'make                 build/longpole (CC=clang, CFLAGS=..., SAN=address,undefined)'
	@echo 'make demo            as root: install what is missing, build, show a slow request'
	@echo 'make check           install what is missing, build, run every test'
	@echo 'make install         program, man pages, completions (PREFIX, DESTDIR)'
	@echo 'make uninstall       remove them again'
	@echo 'make lint            layers, headers, format, clang-tidy, shellcheck'
	@echo 'make format          put the C files into the project layout'
	@echo 'make unit            build the unit tests into build/unit'
	@echo 'make fuzz            every fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)) each'
	@echo 'make bench           cost and size, against perf'
	@echo 'make bench-culprits  every scenario ten times, with a table of right answers'
	@echo 'make clean           remove build/'

# --- program

tools-present:
	@for tool in $(firstword $(CC)) $(CLANG) pkg-config '$(or $(BPFTOOL),bpftool)'; do \
		command -v $$tool >/dev/null || { echo "make: $$tool is missing;" \
		"as root, tools/install-deps build installs what is needed" >&2; exit 1; }; done
	@pkg-config --print-errors --exists $(PKGS) || { echo "make: a library is missing;" \
		"as root, tools/install-deps build installs what is needed" >&2; exit 1; }

# Changes only when the compiler or its flags do, and then everything is built again.
$(BUILD)/flags: FORCE | tools-present
	@mkdir -p $(@D)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || \
		echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' >$@

$(BUILD)/obj/%.o: src/%.c $(BUILD)/flags | $(SKELS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# Written again from nothing: a source that went away must not stay in it.
$(CORE): $(filter-out $(MAIN),$(OBJS))
	@rm -f $@
	ar rcs $@ $^

$(BUILD)/longpole: $(MAIN) $(CORE)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $^ $(PKG_LIBS) -o $@

# --- BPF: object, then the header that embeds it

build/bpf/%.bpf.o: src/bpf/%.bpf.c | tools-present
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF build/bpf/$*.d -c $< -o build/bpf/$*.raw.o
	$(BPFTOOL) gen object $@ build/bpf/$*.raw.o

$(SKELS): build/bpf/%.skel.h: build/bpf/%.bpf.o
	@echo '/* NOLINTBEGIN */' >$@
	$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf >>$@
	@echo '/* NOLINTEND */' >>$@

# --- the programs of bench/culprits, of bench/demo and of the live tests

build/bench/%: bench/culprits/%.c bench/culprits/work.h
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(WARN) $(CFLAGS) $< -o $@ -lpthread

# --- measurements: linked with the modules they measure, and with a peer (libsqlite3-dev)

build/bench/%: bench/%.c $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -MF $@.d $< $(CORE) $(PKG_LIBS) \
		$$(pkg-config --cflags --libs sqlite3) -o $@

# --- tests

unit: $(UNIT)

$(BUILD)/unit/%: tests/unit/%.c $(CORE)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Itests $(ALL_LDFLAGS) -MMD -MP -MF $@.d $< $(CORE) $(PKG_LIBS) \
		$$(pkg-config --cflags --libs cmocka libcjson) -o $@

build/fuzz/obj/%.o: src/%.c | tools-present $(SKELS)
	@mkdir -p $(@D)
	$(CLANG) $(DIALECT) $(WARN) -Isrc -Ibuild $(PKG_CFLAGS) -O1 -g $(FUZZFLAGS) \
		-fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

build/fuzz/core.a: $(FUZZ_OBJS)
	@rm -f $@
	ar rcs $@ $^

build/fuzz/fuzz-%: tests/fuzz/fuzz-%.c build/fuzz/core.a
	@mkdir -p $(@D)
	$(CLANG) $(DIALECT) -Isrc -Ibuild -O1 -g $(FUZZFLAGS) -fsanitize=fuzzer \
		-MMD -MP -MF $@.d $< build/fuzz/core.a $(PKG_LIBS) -o $@

fuzz-build: $(FUZZ)

# What it finds new stays in build/fuzz/corpus, a crash in build/fuzz/crash-NAME-*.
fuzz: $(FUZZ)
	@for f in $(FUZZ); do name=$${f##*/fuzz-}; \
		mkdir -p build/fuzz/corpus/$$name tests/fuzz/corpus/$$name; \
		$$f -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/crash-$$name- \
			-print_final_stats=1 build/fuzz/corpus/$$name tests/fuzz/corpus/$$name \
			|| exit 1; done

check:
	tools/install-deps build test
	$(MAKE) all unit fuzz-build
	tests/run

lint:
	tests/run lint

format:
	clang-format -i $(wildcard src/*/*.[ch] lib/*.[ch] include/longpole/*.h tests/*/*.[ch] \
		bench/*.[ch] bench/*/*.[ch])

demo:
	tools/install-deps build demo
	$(MAKE) all
	bench/demo

bench: all
	bench/run

bench-culprits: all
	bench/culprits/run -n 10

# --- installation

build/man/%: docs/man/%.in $(BUILD)/longpole tools/make-man
	@mkdir -p $(@D)
	tools/make-man $(BUILD)/longpole $< >$@

build/completion/longpole.%: $(BUILD)/longpole
	@mkdir -p $(@D)
	$(BUILD)/longpole completion $* >$@

install: $(BUILD)/longpole $(PAGES) $(COMPLETIONS)
	install -D -m 755 $(BUILD)/longpole $(DESTDIR)$(PREFIX)/bin/longpole
	set -e; for page in $(PAGES); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man1/$${page##*/}; done
	install -D -m 644 build/completion/longpole.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/longpole
	install -D -m 644 build/completion/longpole.zsh \
		$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_longpole
	install -D -m 644 build/completion/longpole.fish \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/longpole.fish

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/longpole
	for page in $(PAGES); do rm -f $(DESTDIR)$(PREFIX)/share/man/man1/$${page##*/}; done
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/longpole
	rm -f $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_longpole
	rm -f $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/longpole.fish

clean:
	rm -rf build

-include $(OBJS:.o=.d) $(FUZZ_OBJS:.o=.d) $(SKELS:.skel.h=.d) $(UNIT:=.d) $(FUZZ:=.d)
