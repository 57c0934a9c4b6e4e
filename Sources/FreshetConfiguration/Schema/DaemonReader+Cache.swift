/// How much of its file system the cache leaves free.
package enum FreeSpaceRule: Hashable, Sendable {
    /// 5 %, or 256 MiB if that is less.
    case standard
    case bytes(UInt64)
    case percent(UInt64)
}

extension DaemonReader {
    /// The smallest `max-total`.
    static let minimumCacheLimit: UInt64 = 1 << 20

    /// Reads the disk quota of the cache.
    func cacheQuota(of daemon: inout DaemonDefinition, in file: Section) {
        guard let section = reader.section(.daemonCache, "cache", in: file) else { return }
        let limit = reader.value("max-total", in: section, .sizeOrInfinity(Self.minimumCacheLimit...ByteSize.largest))
        if let limit { daemon.cacheLimit = limit }
        daemon.minFree = reader.value("min-free", in: section, .freeSpace) ?? daemon.minFree
    }
}

extension ValueKind where Value == UInt64? {
    /// A size, or `infinity`, which is read as nil.
    fileprivate static func sizeOrInfinity(_ range: ClosedRange<UInt64>) -> ValueKind {
        ValueKind(name: "a size such as 512M, or infinity") { scalar throws(ValueError) in
            scalar.text == "infinity" ? nil : try ValueKind<UInt64>.size(range).read(scalar)
        }
    }
}

extension ValueKind where Value == FreeSpaceRule {
    fileprivate static let freeSpace = ValueKind(name: "a size such as 512M, or a percentage such as 10%") {
        scalar throws(ValueError) in
        guard scalar.text.hasSuffix("%") else {
            return .bytes(try ValueKind<UInt64>.size(0...ByteSize.largest).read(scalar))
        }
        let digits = scalar.text.dropLast()
        guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }), let share = UInt64(digits),
            share <= 99
        else {
            throw ValueError("has to be a size, or a percentage from 0% to 99%, not \(scalar.text.quoted)")
        }
        return .percent(share)
    }
}
