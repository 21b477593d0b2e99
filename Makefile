# Flashweir: `make demo` shows it, `make test` tests it. Both install what a Debian machine lacks.
.PHONY: demo test bench bench-load bench-tcp compare build check setup setup-test setup-bench setup-tcp

CARGO ?= cargo
BUILD_TOOLS = cc=gcc
NETWORK_TOOLS = ip=iproute2 ethtool=ethtool
TEST_TOOLS = curl=curl nginx=nginx-light gzip=gzip $(NETWORK_TOOLS)
BENCH_TOOLS = nginx=nginx-light haproxy=haproxy wrk=wrk taskset=util-linux

demo: setup
	$(CARGO) build --release --locked -p flashweir-cli
	target/release/flashweir demo $(ARGS)

build: setup
	$(CARGO) build --release --locked -p flashweir-cli

test: setup-test
	$(CARGO) test --workspace --locked

# Format, lints, documentation: what the gate checks before the tests.
check: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps --locked

# Costs of decisions and of simulated events, then the load generator against wrk and oha, then proxying and refusing against nginx and
# HAProxy, then simulated TCP beside the kernel's: ratios from one run.
bench: setup-bench
	$(CARGO) bench --locked -p flashweir-admission
	$(CARGO) bench --locked -p flashweir-sim --bench events --bench requests
	$(MAKE) bench-load
	$(MAKE) compare
	$(MAKE) bench-tcp

# oha is built from its package once, into the target directory.
bench-load: setup-bench
	[ -x target/tools/bin/oha ] || $(CARGO) install --locked oha --root target/tools
	$(CARGO) bench --locked -p flashweir-cli --bench generator

# Needs root: it makes network namespaces. 12 minutes; ROUNDS and SECONDS shorten it.
bench-tcp: setup-tcp
	$(CARGO) bench --locked -p flashweir-sim --bench tcp

compare: setup-bench
	$(CARGO) build --release --locked -p flashweir-cli
	$(CARGO) bench --locked -p flashweir-cli --bench proxy_cost

setup:
	@scripts/install-missing.sh $(BUILD_TOOLS)
setup-test:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(TEST_TOOLS)
setup-bench:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(BENCH_TOOLS)
setup-tcp:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(NETWORK_TOOLS)
