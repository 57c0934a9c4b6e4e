import FreshetFleet

/// The highest numbers of the records that a pipeline has followed: one for each fleet and definition, because a
/// definition may be changed back.
struct FleetNumbers: Hashable, Sendable {
    /// The most definitions that are remembered.
    static let most = 8

    private struct Entry: Hashable, Sendable {
        /// Fleet and fingerprint.
        var name: String
        var number: UInt64
    }

    /// The last one that was followed is the first.
    private var entries: [Entry] = []

    init() {}

    /// Reads the stored text; lines that are not an entry are left out.
    init(stored text: String) {
        entries = text.split(separator: "\n").prefix(Self.most).compactMap { line in
            guard let blank = line.lastIndex(of: " "), let number = UInt64(line[blank...].dropFirst()) else {
                return nil
            }
            return Entry(name: String(line[..<blank]), number: number)
        }
    }

    /// A line for each entry: fleet, fingerprint, number.
    var stored: String { entries.map { "\($0.name) \($0.number)" }.joined(separator: "\n") }

    private static func name(_ subject: FleetSubject) -> String { "\(subject.fleet) \(subject.fingerprint)" }

    /// 0: none was followed.
    func number(of subject: FleetSubject) -> UInt64 {
        entries.first { $0.name == Self.name(subject) }?.number ?? 0
    }

    /// A record was followed; returns whether its number is new. Two changes may come in another order.
    mutating func settled(_ subject: FleetSubject, _ number: UInt64) -> Bool {
        guard number > self.number(of: subject) else { return false }
        entries.removeAll { $0.name == Self.name(subject) }
        entries.insert(Entry(name: Self.name(subject), number: number), at: 0)
        entries = Array(entries.prefix(Self.most))
        return true
    }
}
