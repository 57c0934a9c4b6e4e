import FreshetModel

/// The text of a record: a JSON object in one line, which fits in a header. The signature covers these bytes, so a reader
/// verifies them before it reads them, and no second encoding of the same record has to be equal.
extension FleetRecord {
    /// The version of the text. A reader rejects a later one, because it may mean something that it must not ignore.
    static let version: UInt64 = 1
    /// The longest text of a record, in bytes: with escapes, all of the above fit.
    static let longestRecord = 16_384

    /// The text of the record.
    package var text: [UInt8] {
        var writer = MemberWriter()
        writer.add("version", Self.version)
        writer.add("fleet", fleet)
        writer.add("pipeline", pipeline)
        writer.add("fingerprint", fingerprint.description)
        writer.add("number", number)
        writer.add("digest", digest.description)
        writer.add("size", size)
        writer.add("entity-tag", validators.entityTag)
        writer.add("last-modified", validators.lastModified)
        writer.add("checked-at", checkedAt)
        writer.add("made-by", madeBy)
        writer.add("demand", answeredDemand)
        writer.add("members", UInt64(members))
        writer.add("roll-out-share", rollOut.map { UInt64($0.share) })
        writer.add("roll-out-since", rollOut?.since)
        writer.add("roll-out-halted", rollOut.map { $0.isHalted ? 1 : 0 })
        writer.add("roll-out-order", rollOut?.order)
        writer.add("roll-out-before", rollOut?.before.description)
        writer.add("roll-out-size-before", rollOut?.sizeBefore)
        writer.add("roll-out-number-before", rollOut?.numberBefore)
        return writer.finish()
    }

    /// Reads a text. Members with other names are ignored: they do not change the meaning of those here, or the version
    /// would be another one.
    package init(text: [UInt8]) throws(RecordFormatError) {
        guard text.count <= Self.longestRecord else { throw .tooLong }
        guard let reader = MemberReader(text) else { throw .notJSON }
        let version = try reader.number("version")
        guard version == Self.version else { throw .newerVersion(version) }
        self.init(
            fleet: try reader.name("fleet"), pipeline: try reader.name("pipeline"),
            fingerprint: try reader.digest("fingerprint"), number: try reader.number("number"),
            digest: try reader.digest("digest"), size: try reader.number("size"),
            checkedAt: try reader.time("checked-at"), madeBy: try reader.machine("made-by"))
        guard number > 0 else { throw .member("number") }
        guard size <= UInt64(Int64.max) else { throw .member("size") }
        validators = Validators(
            entityTag: try reader.text("entity-tag"), lastModified: try reader.text("last-modified"))
        if reader.has("demand") { answeredDemand = try reader.number("demand") }
        members = max(1, try reader.count("members"))
        if reader.has("roll-out-share") { rollOut = try RollOut(reader) }
    }
}

extension FleetRecord.RollOut {
    fileprivate init(_ reader: MemberReader) throws(RecordFormatError) {
        self.init(
            share: try reader.count("roll-out-share"), since: try reader.time("roll-out-since"),
            before: try reader.digest("roll-out-before"), sizeBefore: try reader.number("roll-out-size-before"),
            numberBefore: try reader.number("roll-out-number-before"))
        isHalted = try reader.number("roll-out-halted") != 0
        order = try reader.number("roll-out-order")
        guard sizeBefore <= UInt64(Int64.max) else { throw .member("roll-out-size-before") }
    }
}
