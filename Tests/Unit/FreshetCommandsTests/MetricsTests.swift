import FreshetControl
import Glibc
import TestSupport
import Testing

@testable import FreshetCommands

@Suite struct MetricsTests {
    private var view: MetricsView {
        var jwks = PipelineStatus(
            name: "jwks", source: "https://example.com/jwks", state: .failed, freshness: .stale,
            generation: GenerationStatus(
                number: 7, size: 1_229, digest: "ab", committedAt: 1_795_228_763_000_042, path: "/current/jwks.json"),
            lastCheck: 1_795_228_763_500_000)
        jwks.failure = FailureStatus(message: "404", since: -1, attempts: 2)
        return MetricsView(
            daemon: DaemonStatus(
                version: "1.0", pid: 1, since: 5_000_000, network: "reachable", networkReachable: true,
                pipelines: PipelineCounts([.failed, .idle])),
            signals: [
                SignalStatus(name: #"file "a\b""#, fact: "exists", fired: 3),
                SignalStatus(name: "pipeline jwks", fact: "", fired: 1),
                SignalStatus(name: "dbus org.example.A b", fact: ""),
                SignalStatus(name: "network 192.0.2.1", fact: "", fired: 2),
                SignalStatus(name: "resume", fact: ""),
            ],
            pipelines: [jwks, PipelineStatus(name: "new", source: "s", state: .idle)],
            counters: [
                PipelineCounters(
                    name: "jwks", changed: 2, failed: 1, durationUSec: 1_250_000, requests: 9, receivedBytes: 77)
            ])
    }

    @Test("OpenMetrics output has types, units and the final line")
    func openMetrics() {
        let lines = view.text(.openMetrics).split(separator: "\n").map(String.init)
        for line in [
            "# TYPE freshet_build info", #"freshet_build_info{version="1.0"} 1"#,
            "# UNIT freshet_start_time_seconds seconds",
            "freshet_start_time_seconds 5.000000", #"freshet_pipelines{state="failed"} 1"#,
            "# TYPE freshet_signals_fired counter", #"freshet_signals_fired_total{signal="file",path="\"a\\b\""} 3"#,
            #"freshet_signals_fired_total{signal="pipeline",pipeline="jwks"} 1"#,
            #"freshet_signals_fired_total{signal="dbus",match="org.example.A b"} 0"#,
            #"freshet_signals_fired_total{signal="network",target="192.0.2.1"} 2"#,
            #"freshet_signals_fired_total{signal="resume"} 0"#,
            #"freshet_pipeline_state{pipeline="jwks",state="failed"} 1"#,
            #"freshet_pipeline_state{pipeline="jwks",state="loaded"} 0"#,
            #"freshet_pipeline_committed_time_seconds{pipeline="jwks"} 1795228763.000042"#,
            #"freshet_pipeline_failing_since_time_seconds{pipeline="jwks"} -0.000001"#,
            #"freshet_pipeline_runs_total{pipeline="jwks",outcome="changed"} 2"#,
            #"freshet_pipeline_run_duration_seconds_count{pipeline="jwks"} 3"#,
            #"freshet_pipeline_run_duration_seconds_sum{pipeline="jwks"} 1.250000"#,
            #"freshet_pipeline_received_bytes_total{pipeline="jwks"} 77"#,
        ] { #expect(lines.contains(line), "\(line)") }
        #expect(lines.contains(#"freshet_pipeline_behind{pipeline="jwks"} 0"#))
        #expect(lines.last == "# EOF")
        // A missing value has no sample, and a family without samples is omitted.
        #expect(!lines.contains { $0.contains("generation{pipeline=\"new\"}") })
        #expect(!lines.contains { $0.contains("cache_bytes") || $0.contains("budget") || $0.contains("unknown") })
    }

    @Test("the result of the last reload and the time of the active configuration are present if known")
    func reload() {
        var view = view
        func samples() -> [String] {
            view.text(.openMetrics).split(separator: "\n").map(String.init).filter { $0.hasPrefix("freshet_config_") }
        }
        #expect(samples().isEmpty)
        view.daemon.configurationSince = 7_500_000
        let time = "freshet_config_last_reload_success_timestamp_seconds 7.500000"
        #expect(samples() == ["freshet_config_last_reload_successful 1", time])
        view.daemon.refusedReload = RefusedReload(
            at: 8_000_000, errors: 1, first: ConfigurationDiagnostic(file: "a.yaml", message: "x"))
        #expect(samples() == ["freshet_config_last_reload_successful 0", time])
    }

    @Test("slow jobs of the event loop are counted by name; an older daemon has no such samples")
    func slowJobs() {
        var view = view
        func samples() -> [String] {
            view.text(.openMetrics).split(separator: "\n").map(String.init).filter { $0.hasPrefix("freshet_slow_") }
        }
        #expect(samples().isEmpty)
        view.daemon.slowJobs = [SlowJobStatus(job: "status line", count: 3, longestUSec: 41_500)]
        #expect(
            samples() == [
                #"freshet_slow_jobs_total{job="status line"} 3"#,
                #"freshet_slow_job_longest_seconds{job="status line"} 0.041500"#,
            ])
    }

    @Test("a file is replaced as a whole; a link, or anything but a file, is refused")
    func replacement() throws {
        let temporary = try TemporaryDirectory()
        let directory = temporary.path
        symlink("real.prom", "\(directory)/link.prom")
        func write(_ text: String, to path: String) throws {
            try EditedFile(path, mayBeLink: false).replace(with: Array(text.utf8), isLasting: false)
        }
        try write("one", to: "\(directory)/real.prom")
        try write("two", to: "\(directory)/real.prom")
        #expect(throws: (any Error).self) { try write("x", to: "\(directory)/link.prom") }
        #expect(try EditedFile.content(of: "\(directory)/real.prom") == Array("two".utf8))
        #expect(EditedFile.names(in: directory) == ["link.prom", "real.prom"])
        #expect(throws: (any Error).self) { try write("x", to: "/dev/null") }
        #expect(EditedFile.isMask("/dev/null"))
        #expect(throws: (any Error).self) { try write("x", to: "\(directory)/none/x.prom") }
    }

    @Test("the Prometheus format has the names of samples as families, no units and no final line")
    func prometheus() {
        let lines = view.text(.prometheus).split(separator: "\n").map(String.init)
        #expect(lines.contains("# TYPE freshet_build_info gauge"))
        #expect(lines.contains("# TYPE freshet_pipeline_runs_total counter"))
        #expect(lines.contains("# TYPE freshet_pipeline_run_duration_seconds summary"))
        #expect(!lines.contains { $0.hasPrefix("# UNIT") || $0.hasPrefix("# EOF") })
        let samples = { (text: String) in text.split(separator: "\n").filter { !$0.hasPrefix("#") } }
        #expect(samples(view.text(.prometheus)) == samples(view.text(.openMetrics)))
    }
}
