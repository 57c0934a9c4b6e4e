/// A part of a snapshot that is composed of many responses: the value made from one of them.
package struct SnapshotPart: Hashable, Sendable {
    /// Identifies all other inputs of the value, except the response.
    package var binding: String
    /// The response's `ETag` field as received.
    package var entityTag: String?
    /// The response's `Last-Modified` field as received.
    package var lastModified: String?
    package var value: [UInt8]
    /// The pages of the part, if they can be continued.
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
    /// The number of pages.
    package var count: Int64
    /// The cursor of the next page; nil if there is none.
    package var next: String?
    /// The token that requests changes since then.
    package var token: String?

    package init(items: [UInt8], count: Int64, next: String? = nil, token: String? = nil) {
        self.items = items
        self.count = count
        self.next = next
        self.token = token
    }
}

/// The state of a part's pages, without their items.
package struct PartPagesState: Hashable, Sendable {
    /// The part's name.
    package var part: String
    package var count: Int64
    /// Whether there is a next page.
    package var hasMore: Bool
}

/// Stores parts of snapshots, so that the next run can make a conditional request for each. Readers do not use them: if
/// parts are lost, they are fetched again.
extension LocalCache {
    /// A part of a pipeline's last snapshot; nil if there is no part of this name.
    package func part(_ name: String, of pipeline: String) throws(CacheError) -> SnapshotPart? {
        try withIndex { (index) throws(SQLiteError) in try index.part(name, of: pipeline) }
    }

    /// Stores new parts, and deletes all other parts for which `isKept` is false.
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
