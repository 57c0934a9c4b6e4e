import ControlTestSupport
import FreshetControl
import TestSupport
import Testing

@testable import FreshetCommands

@Suite(.serialized, .hangLimit) struct ProgressTests {
    private func loading(_ change: (inout PipelineStatus) -> Void = { _ in }) -> PipelineStatus {
        var status = PipelineStatus(
            name: "big", source: "https://example.com/", state: .loading, loadedBytes: 1_024)
        change(&status)
        return status
    }

    @Test("the progress of a run is that of its branches, else of its bytes, else unknown")
    func fraction() {
        #expect(ProgressView.bar(loading()) == nil)
        #expect(ProgressView.bar(loading { $0.totalBytes = 4_096 }) == "[======>                 ] 25 %")
        let branches = loading {
            $0.totalBytes = 4_096
            $0.endedBranches = 3
            $0.knownBranches = 4
        }
        #expect(ProgressView.bar(branches) == "[==================>     ] 75 %")
        #expect(ProgressView.amounts(loading { $0.totalBytes = 4_096 }) == "1 KiB of 4 KiB")
    }

    @Test("an origin that sends more than announced is shown at the end")
    func more() {
        #expect(ProgressView.bar(loading { $0.totalBytes = 512 })?.hasSuffix("] 100 %") == true)
    }

    @Test("the line of one pipeline shows its progress")
    func one() {
        #expect(ProgressView.line([loading()], ended: 0) == "big: loading, 1 KiB so far")
        let waiting = loading {
            $0.state = .waiting
            $0.waitingFor = .permit
        }
        #expect(ProgressView.line([waiting], ended: 0) == "big: waiting for the request limit")
        // The run has begun, and waits for a permit for its next request.
        let stalled = loading { $0.waitingFor = .permit }
        #expect(ProgressView.line([stalled], ended: 0) == "big: loading, 1 KiB so far, waiting for the request limit")
        #expect(ProgressView.line([loading { $0.name = "a\u{1B}b" }], ended: 0).hasPrefix("a\\u{1b}b: "))
    }

    @Test("the line of several pipelines counts ended runs and names loading pipelines")
    func several() {
        let idle = loading {
            $0.name = "other"
            $0.state = .idle
        }
        #expect(
            ProgressView.line([loading(), idle], ended: 2)
                == "[============>           ] 2 of 4 pipelines, loading: big")
    }

    /// The output on a terminal of this width during a wait that ends after the first line.
    private func printError(of line: String, columns: Int?) async throws -> (output: String, printError: String) {
        let service = ScriptedService(["big"])
        let (lines, drawn) = AsyncStream.makeStream(of: Void.self)
        service.change { script in
            script.pipelines["big"] = loading { $0.totalBytes = 4_096 }
            script.refresh["big"] = .success(
                RefreshResult(name: "big", outcome: .changed, generation: 3, size: 1_229, durationUSec: 85_000))
            script.loadedMore = .success(
                LoadMoreResult(
                    name: "big", path: [], outcome: .changed, run: 4, generation: 3, size: 2_048, durationUSec: 20_000,
                    pages: 2, hasMore: true))
            if columns != nil {
                script.beforeRefresh = { _ in
                    for await _ in lines { return }
                }
            }
        }
        let transcript = Transcript()
        try await withControlServer(service, rights: ownRights) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path])
            context.errorColumns = columns
            let printError = context.printError
            context.printError = { text in
                printError(text)
                drawn.yield()
            }
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == .success)
        }
        return (transcript.output, transcript.printError)
    }

    @Test("refresh --wait draws the progress on a terminal, and erases the line at the end")
    func awaited() async throws {
        let said = try await printError(of: "refresh big --wait", columns: 80)
        #expect(said.output == "big: changed, generation 3, 1.2 KiB in 85 ms\n")
        #expect(said.printError.hasPrefix("\r\u{1B}[Kbig: [======>                 ] 25 %, 1 KiB of 4 KiB"))
        #expect(said.printError.hasSuffix("\r\u{1B}[K"))
    }

    @Test("load-more --wait draws the progress on a terminal")
    func awaitedPage() async throws {
        let said = try await printError(of: "load-more big --wait", columns: 80)
        #expect(said.output == "big: changed, generation 3, 2 KiB in 20 ms; 2 pages, more exist\n")
        #expect(said.printError.hasPrefix("\r\u{1B}[Kbig: [======>                 ] 25 %, 1 KiB of 4 KiB"))
        #expect(said.printError.hasSuffix("\r\u{1B}[K"))
    }

    @Test("the line is cut at the width of the terminal")
    func narrow() async throws {
        let said = try await printError(of: "refresh big --wait", columns: 20)
        #expect(said.printError.hasPrefix("\r\u{1B}[Kbig: [======>     …\r"), "\(said.printError.debugDescription)")
    }

    /// Waits as in ``printError(of:columns:)`` with a run that waits for the network, without a terminal.
    private func wait(_ line: String, _ status: CommandStatus, endsAfter lines: Int) async throws -> Transcript {
        let service = ScriptedService(["big", "small"])
        let (written, writer) = AsyncStream.makeStream(of: Void.self)
        service.change { script in
            for name in ["big", "small"] {
                script.pipelines[name] = loading {
                    $0.name = name
                    $0.state = .waiting
                    $0.waitingFor = .network
                    $0.waitingDetail = "no route to 192.0.2.1"
                }
                script.refresh[name] = .success(RefreshResult(name: name, outcome: .unchanged))
            }
            script.beforeRefresh = { _ in
                var count = 0
                for await _ in written {
                    count += 1
                    if count == lines { return }
                }
            }
        }
        let transcript = Transcript()
        try await withControlServer(service, rights: ownRights) { path in
            var context = transcript.context(environment: ["FRESHET_SOCKET": path])
            let printError = context.printError
            context.printError = { text in
                printError(text)
                writer.yield()
            }
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == status)
            writer.finish()
        }
        return transcript
    }

    @Test("without a terminal, refresh --wait says once what each run waits for")
    func notice() async throws {
        let transcript = try await wait("refresh big --wait", .success, endsAfter: 1)
        #expect(transcript.output == "big: unchanged\n")
        #expect(transcript.printError == "big: waiting for the network\n")
    }

    @Test("after --timeout, the status is 75 and a message names the runs that have not ended")
    func timeout() async throws {
        let transcript = try await wait("refresh big small --wait -q --timeout 100ms", .tryLater, endsAfter: 2)
        #expect(transcript.output == "")
        #expect(
            transcript.printError == """
                freshetctl: not ended after 100 ms; the requested runs go on:
                big: waiting for the network: no route to 192.0.2.1
                small: waiting for the network: no route to 192.0.2.1

                """)
    }

    @Test("the totals of refresh --all --wait have the outcomes in one order")
    func totals() {
        let results = [
            RefreshResult(name: "a", outcome: .failed), RefreshResult(name: "b", outcome: .unchanged),
            RefreshResult(name: "c", tryLater: TryLaterHint(reason: "429", until: nil)),
            RefreshResult(name: "d", outcome: .unchanged), RefreshResult(name: "e", outcome: .changed),
        ]
        #expect(
            RefreshView.total(results, in: .milliseconds(3_100))
                == "5 pipelines in 3.1 s: 1 changed, 2 unchanged, 1 failed, 1 not started")
        #expect(RefreshView.total([], in: .zero) == "0 pipelines in 0 µs")
    }

    @Test(
        "nothing is drawn without a terminal",
        arguments: ["refresh big --wait", "refresh -q big --wait", "load-more big --wait"])
    func elsewhere(line: String) async throws {
        #expect(try await printError(of: line, columns: nil).printError == "")
    }
}
