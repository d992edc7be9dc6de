//! Spans as a receiver of the OpenTelemetry protocol gets them over a real connection.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cupel_otel::{CupelOtelTraceCollector, CupelVerbosity};
use mock_collector::{MockCollector, MockServer, Protocol, ServerHandle, TestSpan};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::{Builder, Runtime};

use crate::{STAGES, budget, candidates, pipeline};

const PATIENCE: Duration = Duration::from_secs(10);

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn receiver(runtime: &Runtime, protocol: Protocol) -> ServerHandle {
    let server = MockServer::builder().protocol(protocol).start();
    runtime.block_on(server).unwrap()
}

fn resource() -> Resource {
    Resource::builder_empty()
        .with_service_name("cupel-tests")
        .build()
}

/// Runs once at the last tier and flushes the provider.
fn run(provider: &SdkTracerProvider) {
    let mut collector = CupelOtelTraceCollector::with_provider(CupelVerbosity::Full, provider);
    pipeline()
        .run_traced(&candidates(), &budget(40), &mut collector)
        .unwrap();
    provider.shutdown().unwrap();
}

fn check(runtime: &Runtime, server: ServerHandle) {
    runtime
        .block_on(server.wait_for_spans(6, PATIENCE))
        .unwrap();
    runtime.block_on(server.with_collector(check_received));
    runtime.block_on(server.shutdown()).unwrap();
}

fn check_received(received: &MockCollector) {
    assert_eq!(received.span_count(), 6);
    received
        .expect_span()
        .with_resource_attributes([("service.name", "cupel-tests")])
        .assert_count(6);
    received
        .expect_span_with_name("cupel.pipeline")
        .with_attributes([("cupel.verbosity", "Full")])
        .with_attribute("cupel.budget.max_tokens", 40)
        .with_attribute("cupel.tokens.before", 110)
        .with_attribute("gen_ai.conversation.compacted", true)
        .assert_count(1);
    received
        .expect_span_with_name("cupel.stage.slice")
        .with_attribute("cupel.stage.item_count_in", 3)
        .with_attribute("cupel.stage.item_count_out", 2)
        .with_attribute("cupel.exclusion.count", 1)
        .with_event_attributes(
            "cupel.exclusion",
            [
                ("cupel.exclusion.reason", "BudgetExceeded"),
                ("cupel.exclusion.item_kind", "Document"),
            ],
        )
        .with_event_attributes("cupel.exclusion", [("cupel.exclusion.item_tokens", 60)])
        .assert_count(1);
    received
        .expect_span_with_name("cupel.stage.place")
        .with_event_attributes("cupel.item.included", [("cupel.item.score", 0.75)])
        .assert_count(1);

    let span = |name: &str| {
        let mut spans = received.spans().iter().map(TestSpan::span);
        let span = spans.find(|span| span.name == name);
        span.unwrap_or_else(|| panic!("no span {name}"))
    };
    let root = span("cupel.pipeline");
    assert!(root.parent_span_id.is_empty());
    assert_eq!(root.span_id.len(), 8);
    for name in STAGES {
        let stage = span(&format!("cupel.stage.{name}"));
        assert_eq!(stage.parent_span_id, root.span_id, "{name}");
        assert_eq!(stage.trace_id, root.trace_id, "{name}");
        assert!(root.start_time_unix_nano <= stage.start_time_unix_nano);
        assert!(stage.start_time_unix_nano <= stage.end_time_unix_nano);
        assert!(stage.end_time_unix_nano <= root.end_time_unix_nano);
    }
}

/// The bytes that clients sent, over all connections.
type Sent = Arc<Mutex<Vec<u8>>>;

/// Starts a proxy to `receiver` that records what the clients send.
fn start_proxy(receiver: SocketAddr) -> (SocketAddr, Sent) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Sent::default();
    let recorded = Arc::clone(&sent);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, sent) = (client.unwrap(), Arc::clone(&recorded));
            std::thread::spawn(move || relay(client, receiver, &sent));
        }
    });
    (address, sent)
}

fn relay(mut client: TcpStream, receiver: SocketAddr, sent: &Sent) -> std::io::Result<()> {
    let mut server = TcpStream::connect(receiver)?;
    let (mut answers, mut back) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut buffer = [0; 4096];
    while let read @ 1.. = client.read(&mut buffer)? {
        sent.lock().unwrap().extend_from_slice(&buffer[..read]);
        server.write_all(&buffer[..read])?;
    }
    server.shutdown(Shutdown::Both)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

// proves: OTEL-2, OTEL-4, OTEL-5, OTEL-6, OTEL-7, OTEL-10, OTEL-11, OTEL-12
#[test]
fn a_run_arrives_over_http() {
    let runtime = runtime();
    // The exporter's client needs a runtime, which the simple processor finds in this thread.
    let _entered = runtime.enter();
    let server = receiver(&runtime, Protocol::HttpBinary);
    let (address, sent) = start_proxy(server.addr());
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
        .with_endpoint(format!("http://{address}/v1/traces"))
        .with_timeout(PATIENCE)
        .build()
        .unwrap();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource())
        .with_simple_exporter(exporter)
        .build();
    run(&provider);
    check(&runtime, server);

    let sent = sent.lock().unwrap();
    assert!(contains(&sent, b"POST /v1/traces HTTP/1.1"));
    // The receiver does not keep scopes. Field 1 (7 bytes) is the scope; its field 1 (5 bytes) is the
    // name. There is no version.
    assert!(contains(&sent, b"\x0a\x07\x0a\x05cupel"));
}

// proves: OTEL-2, OTEL-4, OTEL-5, OTEL-6, OTEL-7, OTEL-10, OTEL-11, OTEL-12
#[test]
fn a_run_arrives_over_grpc() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let server = receiver(&runtime, Protocol::Grpc);
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(format!("http://{}", server.addr()))
        .with_timeout(PATIENCE)
        .build()
        .unwrap();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource())
        .with_batch_exporter(exporter)
        .build();
    run(&provider);
    check(&runtime, server);
}
