import Synchronization

/// Decides which pipeline owns which file below `current/`.
package struct FileOwnership: Sendable {
    let context: CacheContext

    /// Assigns a file to each pipeline of a configuration. Call it after a configuration was read, before its first
    /// run.
    ///
    /// A pipeline that is not listed loses a file that a listed pipeline needs, and keeps everything else. No file is
    /// removed, and a pipeline whose file changed has no published file until its next commit.
    ///
    /// - Parameter sets: the pipelines that keep several files: their file is the stamp.
    /// - Throws: ``CacheError/fileOwned(file:owner:claimant:)`` and ``CacheError/invalidName(_:reason:)`` before any
    ///   change.
    /// - Returns: the pipelines that had another file or none, or lost theirs. Their commits in progress use the old
    ///   file: see ``awaitCommits(of:)``.
    @discardableResult
    package func assign(
        _ files: [(pipeline: String, file: String)], sets: Set<String> = []
    ) throws(CacheError) -> Set<String> {
        try CacheName.check(files, sets: sets)
        let known = try context.reading { (index) throws(SQLiteError) in try index.pipelines.files() }
        // Most starts and reloads assign the same files as before.
        let areAssigned = files.allSatisfy { pipeline, file in
            known[pipeline].map { $0.file == file && $0.isSet == sets.contains(pipeline) } ?? false
        }
        if areAssigned { return [] }
        let (moved, forgotten) = try context.contentTransaction {
            (index) throws(SQLiteError) -> (Set<String>, [OrphanedContent]) in
            var changed: [(pipeline: IndexedPipeline, file: String)] = []
            var forgotten: [OrphanedContent] = []
            let known = Dictionary(try index.pipelines.all().map { ($0.name, $0) }) { first, _ in first }
            for (name, file) in files {
                let pipeline = if let row = known[name] { row } else { try index.pipelines.ensure(name) }
                if pipeline.file != file || pipeline.isSet != sets.contains(name) { changed.append((pipeline, file)) }
            }
            var moved = Set(changed.map(\.pipeline.name))
            // All files are released before any is assigned, so that two pipelines can exchange their files.
            for (pipeline, _) in changed { try index.pipelines.setFile(nil, of: pipeline.id) }
            for (pipeline, file) in changed {
                for name in CacheLayout.names(of: file, isSet: sets.contains(pipeline.name)) {
                    if let owner = try index.pipelines.owner(of: name), let other = try index.pipelines.row(owner) {
                        moved.insert(owner)
                        if let link = other.link { try index.pipelines.addFormerSet(link, of: other) }
                        try index.pipelines.setFile(nil, of: other.id)
                        try index.setCurrent(nil, of: other.id)
                    }
                }
            }
            for (pipeline, file) in changed {
                let content = try index.assign(file, isSet: sets.contains(pipeline.name), to: pipeline)
                if let content { forgotten.append(content) }
            }
            return (moved, forgotten)
        }
        for name in moved { context.knownEntry(name)?.forget() }
        removeForgotten(forgotten)
        return moved
    }

    /// Waits until the commits in progress of these pipelines have ended. Then none of them can overwrite content that
    /// another pipeline commits to the same file afterwards. Call it without holding locks of pipelines.
    package func awaitCommits(of names: Set<String>) {
        for name in names { context.knownEntry(name)?.holding { _ in } }
    }

    /// Makes the pipeline the owner of the destination's file; throws if another pipeline owns it.
    func claim(_ destination: CacheDestination) throws(CacheError) {
        let known = try context.reading { (index) throws(SQLiteError) in
            try index.pipelines.row(destination.pipeline)
        }
        _ = try claim(destination, known)
    }

    /// The same for a caller that has just read the pipeline's row.
    ///
    /// - Returns: whether the row has changed.
    func claim(_ destination: CacheDestination, _ known: IndexedPipeline?) throws(CacheError) -> Bool {
        if let known, known.file == destination.file, known.isSet == destination.isSet { return false }
        let names = CacheLayout.names(of: destination.file, isSet: destination.isSet)
        let (taken, forgotten) = try context.contentTransaction {
            (index) throws(SQLiteError) -> ((name: String, owner: String)?, OrphanedContent?) in
            for name in names {
                if let owner = try index.pipelines.owner(of: name), owner != destination.pipeline {
                    return ((name, owner), nil)
                }
            }
            let pipeline = try index.pipelines.ensure(destination.pipeline)
            return (nil, try index.assign(destination.file, isSet: destination.isSet, to: pipeline))
        }
        if let taken {
            throw .fileOwned(file: taken.name, owner: taken.owner, claimant: destination.pipeline)
        }
        if let forgotten { removeForgotten([forgotten]) }
        return true
    }

    /// Removes the files of content that was forgotten because the pipeline changed between one file and several files.
    private func removeForgotten(_ forgotten: [OrphanedContent]) {
        for content in forgotten {
            // If a file cannot be removed, the next start finds it.
            for generation in content.generations {
                try? context.fileSystem.unlink(context.layout.generation(generation, of: content.pipeline))
            }
            if let rejected = content.rejected {
                try? context.fileSystem.unlink(context.layout.rejected(rejected, of: content.pipeline))
            }
        }
    }
}
