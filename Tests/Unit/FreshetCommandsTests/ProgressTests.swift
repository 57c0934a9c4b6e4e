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

    @Test("a run's branches say how far it is, or else its bytes, or nothing does")
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

    @Test("an origin that sends more than it said is not past the end")
    func more() {
        #expect(ProgressView.bar(loading { $0.totalBytes = 512 })?.hasSuffix("] 100 %") == true)
    }

    @Test("the line of one pipeline says what it does")
    func one() {
        #expect(ProgressView.line([loading()], ended: 0) == "big: loading, 1 KiB so far")
        let waiting = loading {
            $0.state = .waiting
            $0.waitingFor = .slot
        }
        #expect(ProgressView.line([waiting], ended: 0) == "big: waiting for its turn")
        // It has begun, and waits for a place for what it asks next.
        let stalled = loading { $0.waitingFor = .slot }
        #expect(ProgressView.line([stalled], ended: 0) == "big: loading, 1 KiB so far, waits for its turn")
        #expect(ProgressView.line([loading { $0.name = "a\u{1B}b" }], ended: 0).hasPrefix("a\\u{1b}b: "))
    }

    @Test("the line of several counts those that have ended, and names those that load")
    func several() {
        let idle = loading {
            $0.name = "other"
            $0.state = .idle
        }
        #expect(
            ProgressView.line([loading(), idle], ended: 2)
                == "[============>           ] 2 of 4 pipelines, loading: big")
    }

    /// What is said on a terminal of so many columns while something is awaited that ends after the first line.
    private func talk(of line: String, columns: Int?) async throws -> (output: String, talk: String) {
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
            context.talkColumns = columns
            let talk = context.talk
            context.talk = { text in
                talk(text)
                drawn.yield()
            }
            #expect(Freshetctl.run(line.split(separator: " ").map(String.init), context) == .success)
        }
        return (transcript.output, transcript.talk)
    }

    @Test("who awaits a run on a terminal sees how far it is, and the line goes when it has ended")
    func awaited() async throws {
        let said = try await talk(of: "refresh big --wait", columns: 80)
        #expect(said.output == "big: changed, generation 3, 1.2 KiB in 85 ms\n")
        #expect(said.talk.hasPrefix("\r\u{1B}[Kbig: [======>                 ] 25 %, 1 KiB of 4 KiB"))
        #expect(said.talk.hasSuffix("\r\u{1B}[K"))
    }

    @Test("so does who awaits a further page")
    func awaitedPage() async throws {
        let said = try await talk(of: "load-more big --wait", columns: 80)
        #expect(said.output == "big: changed, generation 3, 2 KiB in 20 ms; 2 pages, there are more\n")
        #expect(said.talk.hasPrefix("\r\u{1B}[Kbig: [======>                 ] 25 %, 1 KiB of 4 KiB"))
        #expect(said.talk.hasSuffix("\r\u{1B}[K"))
    }

    @Test("the line is cut where the terminal ends")
    func narrow() async throws {
        let said = try await talk(of: "refresh big --wait", columns: 20)
        #expect(said.talk.hasPrefix("\r\u{1B}[Kbig: [======>     …\r"), "\(said.talk.debugDescription)")
    }

    @Test(
        "nothing is drawn where nobody looks",
        arguments: ["refresh big --wait", "refresh -q big --wait", "load-more big --wait"])
    func elsewhere(line: String) async throws {
        #expect(try await talk(of: line, columns: nil).talk == "")
    }
}
