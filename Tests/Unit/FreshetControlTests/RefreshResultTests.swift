import FreshetVarlink
import Testing

@testable import FreshetControl

@Suite("Results of refreshed pipelines as JSON") struct RefreshResultTests {
    /// Results with each combination of members.
    private static let results: [RefreshResult] = (0..<512).map { (bits: Int) in
        func has(_ bit: Int) -> Bool { bits >> bit & 1 == 1 }
        return RefreshResult(
            name: "jwks-\(bits)", outcome: has(0) ? RunOutcome.allCases[bits % RunOutcome.allCases.count] : nil,
            run: has(1) ? Int64(bits) : nil, generation: has(2) ? .max : nil, size: has(3) ? 0 : nil,
            durationUSec: has(4) ? -1 : nil, failure: has(5) ? "the origin answered 404" : nil,
            tryLater: has(6) ? TryLaterHint(reason: "a budget", until: has(7) ? 5 : nil) : nil,
            behind: has(8) ? has(1) : nil, publicFailure: "a secret")
    }

    @Test("the encoding without an encoder is the same, for all combinations of members")
    func members() throws {
        for result in Self.results {
            let message = ControlMessage.Results(results: [result])
            #expect(try message.parameters() == VarlinkParameters(encoding: message))
        }
        for message in [
            ControlMessage.Results(results: []), ControlMessage.Results(results: Self.results),
            ControlMessage.Results(results: [], waiting: [WaitingHint(name: "jwks", reason: "no network")]),
        ] {
            #expect(try message.parameters() == VarlinkParameters(encoding: message))
        }
    }

    @Test("the encoding without an encoder is the same, for all characters")
    func texts() throws {
        let ranges: [ClosedRange<UInt32>] = [0...0x2FF, 0x2000...0x20FF, 0xFFF0...0xFFFF, 0x1F600...0x1F610]
        for scalar in ranges.joined().compactMap(Unicode.Scalar.init) {
            for text in ["\(scalar)", "a\(scalar)\u{308}b"] {
                let result = RefreshResult(
                    name: text, failure: text, tryLater: TryLaterHint(reason: text), publicFailure: text)
                let message = ControlMessage.Results(results: [result])
                #expect(try message.parameters() == VarlinkParameters(encoding: message))
            }
        }
    }
}
