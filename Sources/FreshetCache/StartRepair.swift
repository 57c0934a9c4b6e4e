/// What the index says of files, and the files say otherwise: repaired at the start, before anything is concluded from it.
struct StartRepair {
    private let cache: LocalCache

    init(_ cache: LocalCache) { self.cache = cache }

    /// - Parameter repairs: what of the index was out of range.
    /// - Returns: what was repaired besides.
    func perform(after repairs: [IndexRepair]) throws(CacheError) -> [IndexRepair] {
        var found: [IndexRepair] = []
        let kinds = try repairKinds()
        if kinds > 0 { found.append(IndexRepair("pipelines.is_set", rows: kinds, isDropped: false)) }
        // Sizes are looked up only if something was wrong, or if content would go for them.
        try cache.measure()
        let isDoubtful = !repairs.isEmpty || cache.isOverLimit
        let sizes = isDoubtful ? try repairSizes() : 0
        if !repairs.isEmpty {
            try cache.withIndex { (index) throws(SQLiteError) in try index.rememberKept() }
        }
        if sizes > 0 { found.append(IndexRepair("the size of content", rows: sizes, isDropped: false)) }
        // Told of once.
        let known = Set(repairs.map(\.place))
        if known.contains("generations.size") { found.removeAll { $0.place == "the size of content" } }
        return found.filter { !known.contains($0.place) }
    }

    /// Whether a pipeline keeps one file or several: with the other kind all that it keeps would be forgotten.
    private func repairKinds() throws(CacheError) -> Int64 {
        let rows = try cache.withIndex { (index) throws(SQLiteError) in try index.pipelines() }
        var count: Int64 = 0
        for row in rows {
            guard let file = row.file else { continue }
            var isSet = row.isSet
            if let link = CacheLayout.linkName(ofStamp: file) {
                // One that had several before, and now has one file of this name, has their directories still.
                if !isSet, !row.formerSets.contains(link) { isSet = try cache.isOfSeveral(file, of: row.name) }
            } else {
                isSet = false
            }
            guard isSet != row.isSet else { continue }
            count += 1
            let (id, isSeveral) = (row.id, isSet)
            try cache.withIndex { (index) throws(SQLiteError) in try index.setKind(isSet: isSeveral, of: id) }
        }
        return count
    }

    /// How many bytes there are is asked of the files: content would go, or would stay, for a number that is wrong.
    private func repairSizes() throws(CacheError) -> Int64 {
        let (rows, generations, refused) = try cache.withIndex { (index) throws(SQLiteError) in
            (try index.pipelines(), try index.generations(), try index.refused())
        }
        var wrong: [(pipeline: Int64, generation: IndexedGeneration)] = []
        var wrongRefusals: [(pipeline: Int64, refusal: IndexedRejection)] = []
        for row in rows {
            for generation in generations[row.id] ?? [] {
                let path = cache.layout.generation(generation.content, of: row.name)
                guard let size = try size(of: path), size != generation.identity.size else { continue }
                var right = generation
                right.identity.size = size
                wrong.append((row.id, right))
            }
            for (pipeline, refusal) in refused where pipeline == row.id {
                guard let size = try size(of: cache.layout.refused(refusal.digest, of: row.name)), size != refusal.size
                else { continue }
                var right = refusal
                right.size = size
                wrongRefusals.append((pipeline, right))
            }
        }
        guard !wrong.isEmpty || !wrongRefusals.isEmpty else { return 0 }
        try cache.contentTransaction { [wrong, wrongRefusals] (index) throws(SQLiteError) in
            for (pipeline, generation) in wrong { try index.put(generation, of: pipeline) }
            for (pipeline, refusal) in wrongRefusals { try index.setRefused(refusal, of: pipeline) }
        }
        return Int64(wrong.count + wrongRefusals.count)
    }

    private func size(of path: String) throws(CacheError) -> Int64? {
        let status = try cache.onFiles { (files) throws(SystemCallError) in try files.status(path) }
        return status.flatMap { $0.isRegularFile ? min($0.identity.size, IndexBounds.sizes.upperBound) : nil }
    }
}

extension CacheIndex {
    fileprivate mutating func setKind(isSet: Bool, of pipeline: Int64) throws(SQLiteError) {
        try database.run("UPDATE pipelines SET is_set = ? WHERE id = ?", .integer(isSet ? 1 : 0), .integer(pipeline))
    }
}
