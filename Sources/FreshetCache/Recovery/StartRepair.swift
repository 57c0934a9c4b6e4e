/// Repairs values in the index that disagree with the files. Runs at the start, before other steps use these values.
struct StartRepair {
    let context: CacheContext
    let recovery: CacheRecovery
    let space: CacheSpace

    /// - Parameter repairs: the values of the index that were out of range.
    /// - Returns: the additional repairs, and the rows of all pipelines.
    func perform(
        after repairs: [IndexRepair]
    ) throws(CacheError) -> (repairs: [IndexRepair], rows: [IndexedPipeline]) {
        var found: [IndexRepair] = []
        var rows = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.all() }
        let kinds = try repairKinds(of: &rows)
        if kinds > 0 { found.append(IndexRepair("pipelines.is_set", rows: kinds, isDropped: false)) }
        // Sizes are compared only if there were errors, also in an earlier start that was killed meanwhile, or if
        // content would be removed because of them.
        try context.measure()
        var hasRepairs = !repairs.isEmpty
        if !hasRepairs {
            hasRepairs = try context.withIndex { (index) throws(SQLiteError) in
                try IndexValidation.isUnfinished(in: index.database)
            }
        }
        let isDoubtful = hasRepairs || space.isOverLimit
        let sizes = isDoubtful ? try repairSizes() : 0
        if hasRepairs {
            try context.transaction { (index) throws(SQLiteError) in
                try index.history.putKept()
                try IndexValidation.setFinished(in: index.database)
            }
        }
        if sizes > 0 { found.append(IndexRepair("the size of content", rows: sizes, isDropped: false)) }
        // Each repair is reported once.
        let known = Set(repairs.map(\.place))
        if known.contains("generations.size") { found.removeAll { $0.place == "the size of content" } }
        return (found.filter { !known.contains($0.place) }, rows)
    }

    /// Repairs whether a pipeline keeps one file or several files: with the wrong value, all its content would be
    /// deleted.
    private func repairKinds(of rows: inout [IndexedPipeline]) throws(CacheError) -> Int64 {
        var count: Int64 = 0
        for index in rows.indices {
            let row = rows[index]
            guard let file = row.file else { continue }
            var isSet = row.isSet
            if let link = CacheLayout.linkName(ofStamp: file) {
                // A pipeline that kept several files before, and now keeps one file of this name, still has their
                // directories.
                if !isSet, !row.formerSets.contains(link) { isSet = try recovery.isOfSeveral(file, of: row.name) }
            } else {
                isSet = false
            }
            guard isSet != row.isSet else { continue }
            count += 1
            rows[index].isSet = isSet
            let (id, isSeveral) = (row.id, isSet)
            try context.withIndex { (index) throws(SQLiteError) in
                try index.pipelines.setKind(isSet: isSeveral, of: id)
            }
        }
        return count
    }

    /// Repairs the sizes in the index from the files: with a wrong size, too much or too little content would be
    /// removed.
    private func repairSizes() throws(CacheError) -> Int64 {
        let (rows, generations, rejected) = try context.withIndex { (index) throws(SQLiteError) in
            (try index.pipelines.all(), try index.generations.all(), try index.rejected.all())
        }
        var wrong: [(pipeline: Int64, generation: IndexedGeneration)] = []
        var wrongRejections: [(pipeline: Int64, rejection: IndexedRejection)] = []
        for row in rows {
            for generation in generations[row.id] ?? [] {
                let path = context.layout.generation(generation.content, of: row.name)
                guard let size = try size(of: path), size != generation.identity.size else { continue }
                var right = generation
                right.identity.size = size
                wrong.append((row.id, right))
            }
            for (pipeline, rejection) in rejected where pipeline == row.id {
                guard let size = try size(of: context.layout.rejected(rejection.digest, of: row.name)),
                    size != rejection.size
                else { continue }
                var right = rejection
                right.size = size
                wrongRejections.append((pipeline, right))
            }
        }
        guard !wrong.isEmpty || !wrongRejections.isEmpty else { return 0 }
        try context.contentTransaction { [wrong, wrongRejections] (index) throws(SQLiteError) in
            for (pipeline, generation) in wrong { try index.put(generation, of: pipeline) }
            for (pipeline, rejection) in wrongRejections { try index.rejected.set(rejection, of: pipeline) }
        }
        return Int64(wrong.count + wrongRejections.count)
    }

    private func size(of path: String) throws(CacheError) -> Int64? {
        let status = try context.onFiles { (files) throws(SystemCallError) in try files.status(path) }
        return status.flatMap { $0.isRegularFile ? min($0.identity.size, IndexBounds.sizes.upperBound) : nil }
    }
}
