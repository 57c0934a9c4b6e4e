import ControlTestSupport
import FreshetControl
import FreshetVarlink
import TestSupport
import Testing

@Suite(.serialized, .hangLimit) struct ExaminationTests {
    private func examined(_ findings: Int, of generations: Int64 = 0) -> ControlMessage.Examined {
        var examined = ControlMessage.Examined()
        examined.findings = (0..<findings).map { ExaminationFinding(kind: .stray, path: "/c/\($0)") }
        examined.generations = generations
        return examined
    }

    @Test("an examination covers the index, the strays and each pipeline, and sends findings in several replies")
    func steps() async throws {
        let limit = ControlDispatcher.findingsPerReply
        let service = ScriptedService(["a", "b"])
        let (strays, own) = (examined(2 * limit + 1), examined(1, of: 5))
        service.change { script in
            script.examined[.strays] = .success(strays)
            script.examined[.pipeline("b")] = .success(own)
        }
        try await withControlServer(service) { path in
            var total = ControlMessage.Examined()
            var sizes: [Int] = []
            try ControlClient(path: path).examine(ControlMessage.Examine()) { part in
                sizes.append(part.findings.count)
                total.add(part)
            }
            #expect(sizes == [limit, limit, 2])
            #expect(total.findings == strays.findings + own.findings && total.generations == 5)
            try ControlClient(path: path).examine(ControlMessage.Examine(repair: true)) { _ in }
        }
        #expect(
            service.asked == ["repair index", "repair strays", #"repair pipeline("a")"#, #"repair pipeline("b")"#])
    }

    @Test("an examination requires the right to change things, and more")
    func rights() async throws {
        try await withControlServer(ScriptedService(), rights: strangerRights) { path in
            #expect(throws: ControlClient.Failure.refused(.permissionDenied)) {
                try ControlClient(path: path).examine(ControlMessage.Examine()) { _ in }
            }
        }
        try await withControlServer(ScriptedService()) { path in
            let client = try VarlinkClient(path: path)
            #expect(throws: VarlinkClientError.refused(.expectedMore)) {
                try client.call("io.freshet.Control.Examine", .none)
            }
        }
    }

    @Test("a failed examination ends with the error, which may have no pipeline")
    func failure() async throws {
        let service = ScriptedService(["a"])
        let error = ControlError.failed(name: nil, reason: "the index failed")
        service.change { $0.examined[.index] = .failure(error) }
        try await withControlServer(service) { path in
            #expect(throws: ControlClient.Failure.refused(error)) {
                try ControlClient(path: path).examine(ControlMessage.Examine()) { _ in }
            }
        }
    }

    @Test("each kind of finding has a description and a remedy", arguments: ExaminationFinding.Kind.allCases)
    func words(kind: ExaminationFinding.Kind) {
        var finding = ExaminationFinding(kind: kind, pipeline: "jwks", generation: 3, path: "/c/x", detail: "why")
        let lines = finding.lines
        #expect(lines.count == 2)
        #expect(lines[0].hasPrefix("jwks: ") && lines[0].hasSuffix(": /c/x (why)"))
        #expect(lines[1].hasPrefix("  ") && lines[1].hasSuffix("."))
        finding.repaired = true
        #expect(finding.lines == [lines[0] + "; repaired"])
    }

    @Test("the total has the examined amount and the remaining errors")
    func totals() {
        var total = ControlMessage.Examined()
        total.add(examined(0, of: 1))
        #expect(total.total == "0 pipelines, 1 generation, 0 bytes: no errors")
        total.add(examined(2))
        total.findings[0].repaired = true
        #expect(total.total == "0 pipelines, 1 generation, 0 bytes: 1 repaired, 1 error left")
        total.unnamed = 3
        #expect(total.left == 4)
    }
}
