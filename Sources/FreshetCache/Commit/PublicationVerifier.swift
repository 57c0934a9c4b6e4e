import Synchronization

/// Verifies that the published file of a pipeline is the one in the index, before the copy is used.
struct PublicationVerifier: Sendable {
    let context: CacheContext
    let published: PublishedFiles
    let sets: FileSetStore
    let recovery: CacheRecovery

    /// The current generation, if the published file has its content; nil also if it is withdrawn.
    ///
    /// Usually this costs a query of the index and one `lstat`. Only if the file differs, the pipeline's lock is taken,
    /// which waits for a commit in progress: between its rename and its transaction the file and the index differ.
    func publication(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        if let known = try context.reading({ (index) throws(SQLiteError) in try index.publication(of: pipeline) }) {
            return try verified(known)
        }
        return try verifiedPublication(of: pipeline)
    }

    /// The same for a publication that was just read from the index.
    func verified(_ known: IndexedPublication) throws(CacheError) -> IndexedPublication? {
        if known.isWithdrawn {
            // The next access repairs an incomplete withdrawal.
            guard context.isSuspect(known.pipeline.name) else { return nil }
        } else if try status(of: known)?.identity == known.generation.identity, try sets.isShown(known) {
            return known
        }
        return try verifiedPublication(of: known.pipeline.name)
    }

    private func verifiedPublication(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        try context.entry(pipeline).withLock { (state) throws(CacheError) in
            try verifiedPublication(of: pipeline, &state)
        }
    }

    /// The same, for a caller that holds the pipeline's lock.
    func verifiedPublication(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        guard let known = try keptPublication(of: pipeline, &state), !known.isWithdrawn else { return nil }
        return known
    }

    // MARK: Kept content

    /// The current generation, published or withdrawn, if its content is undamaged: conditional requests use its
    /// validators, and new content is compared with it.
    func keptPublication(of pipeline: String) throws(CacheError) -> IndexedPublication? {
        let known = try context.reading { (index) throws(SQLiteError) in try index.publication(of: pipeline) }
        return if let known { try kept(known) } else { try verifiedPublication(of: pipeline) }
    }

    /// The same for a publication that was just read from the index.
    func kept(_ known: IndexedPublication) throws(CacheError) -> IndexedPublication? {
        guard known.isWithdrawn else { return try verified(known) }
        let pipeline = known.pipeline.name
        if try status(of: known)?.identity == known.generation.identity, !context.isSuspect(pipeline) { return known }
        return try context.entry(pipeline).withLock { (state) throws(CacheError) in
            try keptPublication(of: pipeline, &state)
        }
    }

    /// The same, for a caller that holds the pipeline's lock.
    func keptPublication(
        of pipeline: String, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        try repair(pipeline, &state)
        guard let known = try context.reading({ (index) throws(SQLiteError) in try index.publication(of: pipeline) })
        else { return nil }
        return try kept(known, &state)
    }

    /// What a commit needs to know of a pipeline. Its ``IndexedCommit/publication`` is what
    /// ``keptPublication(of:_:)`` returns.
    func commit(of pipeline: String, _ state: inout PipelineEntry.State) throws(CacheError) -> IndexedCommit {
        try repair(pipeline, &state)
        var known = try context.reading { (index) throws(SQLiteError) in try index.commits.row(of: pipeline) }
        if let publication = known.publication {
            known.publication = try kept(publication, &state)
            // Its file was perhaps verified just now.
            if let verified = known.publication?.generation, verified.content == known.held?.content {
                known.held = verified
            }
        }
        return known
    }

    private func kept(
        _ known: IndexedPublication, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        guard let known = try intact(known, &state) else { return nil }
        do throws(CacheError) {
            // For several files the stamp is authoritative; the link and the directory are made from it.
            if !known.isWithdrawn { try sets.agree(with: known) }
        } catch .noBundle {
            // The pipeline cannot publish this content; it has none until its next commit.
            return nil
        }
        return known
    }

    /// Makes the index agree with the files, if they perhaps differ.
    private func repair(_ pipeline: String, _ state: inout PipelineEntry.State) throws(CacheError) {
        guard state.isSuspect || state.epoch != context.index.epoch else { return }
        try context.onFiles { (files) throws(SystemCallError) in try context.makeDirectories(for: pipeline, files) }
        try recovery.repair(pipeline, &state)
    }

    /// A publication that was just read from the index, if its content is undamaged.
    private func intact(
        _ publication: IndexedPublication, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> IndexedPublication? {
        guard let status = try status(of: publication), status.isRegularFile else { return nil }
        var known = publication
        known.status = status
        if status.identity == known.generation.identity { return known }
        if status.identity == state.refuted { return nil }
        if status.identity != state.unrecorded {
            guard try context.fileSystem.digest(of: published.path(of: known)) == known.generation.content.digest else {
                state.refuted = status.identity
                return nil
            }
        }
        known.generation.identity = status.identity
        let (generation, id) = (known.generation, known.pipeline.id)
        do throws(CacheError) {
            try context.withIndex { (index) throws(SQLiteError) in try index.update(generation, of: id) }
            state.unrecorded = nil
        } catch  where error.isFullIndex {
            // The copy is intact also if the index has no space for the identity of its file.
            state.unrecorded = status.identity
        }
        return known
    }

    private func status(of publication: IndexedPublication) throws(CacheError) -> FileStatus? {
        try context.onFiles { (files) throws(SystemCallError) in try files.status(published.path(of: publication)) }
    }
}
