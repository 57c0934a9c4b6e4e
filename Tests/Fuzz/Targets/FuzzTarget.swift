/// A reader of bytes from outside, as the fuzzer drives it.
struct FuzzTarget: Sendable {
    /// The name of the target, and of its folder in `Corpus`.
    let name: String
    /// The longest input for the reader, in bytes: the program rejects longer inputs before it reads them.
    let limit: Int
    /// Only reads the input: its cost is measured.
    let read: @Sendable ([UInt8]) -> Void
    /// Reads the input, and checks the rules for the result.
    let check: @Sendable ([UInt8]) throws(FuzzViolation) -> Void
    /// Inputs for which the cost must be proportional to the length.
    let shapes: [CostShape]

    init(
        _ name: String, limit: Int = 64 << 10, shapes: [CostShape], read: @escaping @Sendable ([UInt8]) -> Void,
        check: @escaping @Sendable ([UInt8]) throws(FuzzViolation) -> Void
    ) {
        self.name = name
        self.limit = limit
        self.shapes = shapes
        self.read = read
        self.check = check
    }
}

/// A rule that does not hold for an input.
struct FuzzViolation: Error, Hashable, CustomStringConvertible {
    var description: String
}

/// Throws ``FuzzViolation`` if a rule does not hold.
func hold(_ rule: String, _ condition: Bool) throws(FuzzViolation) {
    guard condition else { throw FuzzViolation(description: rule) }
}

/// Keeps the optimizer from removing the work that made a value.
@inline(never) func keep<Value: ~Copyable & ~Escapable>(_ value: borrowing Value) {}

/// An input that grows: a beginning, a unit that is repeated, and an end.
struct CostShape: Hashable, Sendable, CustomStringConvertible {
    let name: String
    let before: [UInt8]
    let unit: [UInt8]
    let after: [UInt8]
    /// The longest input of this shape that the reader takes, in bytes.
    let largest: Int

    init(_ name: String, before: String = "", unit: String, after: String = "", upTo largest: Int = 64 << 10) {
        self.name = name
        self.before = Array(before.utf8)
        self.unit = Array(unit.utf8)
        self.after = Array(after.utf8)
        self.largest = largest
    }

    var description: String { name }

    /// An input of this shape with at most so many bytes.
    func input(ofBytes size: Int) -> [UInt8] {
        let count = max(0, size - before.count - after.count) / max(1, unit.count)
        var bytes = before
        bytes.reserveCapacity(size)
        for _ in 0..<count { bytes += unit }
        return bytes + after
    }
}

/// An input of several sections, separated by lines that have only `%%`.
func sections(of input: [UInt8]) -> [[UInt8]] {
    var sections: [[UInt8]] = [[]]
    for line in input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
        if line.elementsEqual("%%".utf8) {
            sections.append([])
        } else {
            if sections[sections.count - 1].isEmpty == false { sections[sections.count - 1].append(UInt8(ascii: "\n")) }
            sections[sections.count - 1] += line
        }
    }
    return sections
}

extension Array where Element == [UInt8] {
    /// A section as text; an empty one if there are fewer.
    func text(_ index: Int) -> String { index < count ? String(decoding: self[index], as: UTF8.self) : "" }
}

/// All targets.
enum FuzzTargets {
    static let all: [FuzzTarget] = [
        .varlinkJSON, .varlinkMessages, .httpHead, .httpDates, .linkField, .yaml, .hook, .urlTemplate, .textTemplate,
        .netlink,
        .minisign, .checksumList, .jqReply, .mustache, .unpackReport, .indexRows, .natsParser, .fleetRecord,
        .fleetClaim,
        .tokenAnswer, .recording,
    ]

    static func named(_ name: String) -> FuzzTarget? { all.first { $0.name == name } }
}
