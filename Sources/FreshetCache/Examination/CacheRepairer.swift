import FreshetModel

/// Repairs the findings of an examination. Damaged files are removed, so that the next request is unconditional;
/// foreign files are moved aside, because they may belong to a user.
struct CacheRepairer: Sendable {
    let context: CacheContext
    let sets: FileSetStore
    let recovery: CacheRecovery
    let verifier: PublicationVerifier

    /// Repairs the findings of a pipeline. The caller holds the pipeline's lock.
    ///
    /// - Returns: the current generation afterwards.
    func repair(
        _ pipeline: String, _ examination: inout CacheExamination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CurrentGeneration? {
        let row = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.row(pipeline) }
        let isCopyWhole = !examination.findings.contains { [.copyMissing, .copyDamaged].contains($0.kind) }
        let directory = context.layout.generations(of: pipeline)
        if try !context.isDirectory(directory) { try context.moveToStrays(directory) }
        // Suspect until index and files agree again.
        state.isSuspect = true
        state.refuted = nil
        // The copy is repaired first: its inode can be compared only as long as the generation's file has its name.
        examination.repair { (finding) throws(CacheError) in
            switch finding.kind {
            case .copyDamaged: try discard(finding.path)
            case .copyDuplicated: try joinCopy(of: row, at: finding.path)
            default: break
            }
        }
        examination.repair { (finding) throws(CacheError) in
            switch finding.kind {
            case .contentDamaged, .contentMissing:
                let isCopy = isCopyWhole && finding.generation == row?.current && row?.withdrawnAt == nil
                try removeContent(finding, of: row, restoringFrom: isCopy ? row?.file : nil)
            case .contentUnknown, .unfinished: try context.remove(finding.path)
            case .rejectedDamaged:
                try context.remove(finding.path)
                if let row {
                    try context.withIndex { (index) throws(SQLiteError) in try index.rejected.set(nil, of: row.id) }
                }
            case .stray: try context.moveToStrays(finding.path)
            case .setDamaged: if let row { try clearLink(of: row) }
            // Repaired above or below, or not repairable here.
            case .copyDamaged, .copyDuplicated, .copyMissing, .pinLost, .indexDamaged: break
            }
        }
        try context.onFiles { (files) throws(SystemCallError) in try context.makeDirectories(for: pipeline, files) }
        _ = try recovery.reconcile(pipeline)
        try context.measure()
        state.isSuspect = false
        guard let publication = try verifier.verifiedPublication(of: pipeline, &state) else { return nil }
        if examination.findings.contains(where: { $0.kind == .setDamaged }) {
            try sets.agree(with: publication, verifiesAll: true)
        }
        return publication.generation(at: context.layout.location(publication.file), revision: state.nextRevision())
    }

    /// Removes a name that is not needed, if its content is kept; otherwise moves the object aside.
    func discard(_ path: String) throws(CacheError) {
        if try isKept(path) { try context.remove(path) } else { try context.moveToStrays(path) }
    }

    /// Whether the file is a hard link to a generation.
    private func isKept(_ path: String) throws(CacheError) -> Bool {
        guard let status = try context.status(path), status.isRegularFile, status.links > 1 else { return false }
        let rows = try context.withIndex { (index) throws(SQLiteError) in try index.pipelines.all() }
        for row in rows {
            let directory = context.layout.generations(of: row.name)
            let names = try context.onFiles { (files) throws(SystemCallError) in try files.list(directory) }
            if names.contains(where: { $0.inode == status.identity.inode }) { return true }
        }
        return false
    }

    /// The content of a generation is missing or damaged. If the published file still has it, the generation's name is
    /// linked to that file again.
    private func removeContent(
        _ finding: CacheFinding, of row: IndexedPipeline?, restoringFrom file: String?
    ) throws(CacheError) {
        guard let row, let number = finding.generation else { return }
        if finding.kind == .contentDamaged { try context.remove(finding.path) }
        guard let file else {
            return try context.withIndex { (index) throws(SQLiteError) in
                try index.generations.forget(number, of: row.id)
            }
        }
        let reader = context.layout.reader(file)
        let identity = try context.onFiles { (files) throws(SystemCallError) in
            try context.makeDirectories(for: row.name, files)
            try files.link(reader, to: finding.path)
            try files.synchronizeDirectory(context.layout.generations(of: row.name))
            return try files.status(reader)?.identity
        }
        try record(identity, of: number, row)
    }

    /// Makes the published file a hard link to the file of its generation again.
    private func joinCopy(of row: IndexedPipeline?, at path: String) throws(CacheError) {
        guard let row, let number = row.current else { return }
        let found = try context.withIndex { (index) throws(SQLiteError) in
            try index.generations.row(number, of: row.id)
        }
        guard let known = found else { return }
        let token = context.names.make()
        defer { context.names.release(token) }
        let identity = try context.onFiles { (files) throws(SystemCallError) in
            try files.replace(
                path, withLinkTo: context.layout.generation(known.content, of: row.name),
                by: context.layout.readerTemporary(token))
            try files.synchronizeDirectory(context.layout.current)
            return try files.status(path)?.identity
        }
        try record(identity, of: number, row)
    }

    private func record(_ identity: FileIdentity?, of number: Int64, _ row: IndexedPipeline) throws(CacheError) {
        guard let identity else { return }
        try context.withIndex { (index) throws(SQLiteError) in
            guard var generation = try index.generations.row(number, of: row.id) else { return }
            generation.identity = identity
            try index.put(generation, of: row.id)
        }
    }

    /// Moves an object aside that is in the place of the link.
    private func clearLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        let path = context.layout.reader(link)
        let isOurs = try context.onFiles { (files) throws(SystemCallError) in
            try files.linkTarget(path)?.hasPrefix(CacheLayout.targetPrefix(of: row.name)) == true
        }
        if !isOurs { try context.moveToStrays(path) }
    }
}

extension CacheExamination {
    /// Repairs each finding; if a repair fails, the finding gets the error as its detail.
    mutating func repair(_ body: (CacheFinding) throws(CacheError) -> Void) {
        for index in findings.indices {
            do throws(CacheError) {
                try body(findings[index])
            } catch {
                findings[index].detail = error.description
            }
        }
    }
}
