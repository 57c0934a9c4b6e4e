/// A part of a snapshot that is put together from many answers: what one of them became.
package struct SnapshotPart: Hashable, Sendable {
    /// What the value depends on, besides the answer.
    package var binding: String
    /// The answer's `ETag` field as it came.
    package var entityTag: String?
    /// The answer's `Last-Modified` field as it came.
    package var lastModified: String?
    package var value: [UInt8]
    /// The pages that it is made of, if they may be continued.
    package var pages: PartPages?

    package init(
        binding: String, entityTag: String? = nil, lastModified: String? = nil, value: [UInt8], pages: PartPages? = nil
    ) {
        self.binding = binding
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.value = value
        self.pages = pages
    }
}

/// The pages of a part so far.
package struct PartPages: Hashable, Sendable {
    package var items: [UInt8]
    /// How many there are.
    package var count: Int64
    /// What the next one is asked for by; nil: there is none.
    package var next: String?
    /// What asks for the changes since.
    package var token: String?

    package init(items: [UInt8], count: Int64, next: String? = nil, token: String? = nil) {
        self.items = items
        self.count = count
        self.next = next
        self.token = token
    }
}

/// What is known of a part's pages without reading them.
package struct PartPagesState: Hashable, Sendable {
    /// The part's name.
    package var part: String
    package var count: Int64
    /// There is a next one.
    package var hasMore: Bool
}

/// Parts of snapshots, so that the next run asks for each conditionally. They are no copies that anybody reads: what is
/// lost of them is fetched again.
extension LocalCache {
    /// A part of a pipeline's last snapshot; nil: none has this name.
    package func part(_ name: String, of pipeline: String) throws(CacheError) -> SnapshotPart? {
        try withIndex { (index) throws(SQLiteError) in try index.part(name, of: pipeline) }
    }

    /// Remembers new parts and, of those that are remembered, the ones whose names are kept; forgets all others.
    package func keepParts(
        of pipeline: String, new: [String: SnapshotPart], and isKept: (_ name: String) -> Bool
    ) throws(CacheError) {
        try CacheName.check(pipeline)
        try transaction { (index) throws(SQLiteError) in
            let row = try index.ensurePipeline(pipeline).id
            for name in try index.partNames(of: row) where new[name] == nil && !isKept(name) {
                try index.forgetPart(name, of: row)
            }
            for (name, part) in new { try index.put(part, as: name, of: row) }
        }
    }
}
