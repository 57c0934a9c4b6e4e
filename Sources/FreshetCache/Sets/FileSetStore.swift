/// Pipelines that keep several files. The committed generation has all files as one JSON object; in addition, a
/// directory has the files separately, and a link leads readers to it.
///
/// A commit has two more steps for this: the directory with all its files is made and flushed before the generation,
/// and the link is renamed before the stamp. The state of `current/` and of the index depends only on the stamp, as for
/// any other file; the link follows it. The caller of each of these methods holds the pipeline's lock.
extension LocalCache {
    // MARK: Writing

    /// Makes the directory of a generation, or repairs an existing directory.
    ///
    /// - Parameter path: a file with the generation's content, mode and group.
    func makeSet(_ content: StoredContent, of pipeline: String, from path: String) throws(CacheError) {
        let (bundle, status) = try bundle(at: path)
        let directory = layout.set(try setName(of: content, in: pipeline), of: pipeline)
        let isThere = try onFiles { (files) throws(SystemCallError) in
            try self.makeSetDirectories(for: pipeline, files)
            return try self.isDirectory(directory, orMoveAside: files)
        }
        if isThere { return try repairSet(directory, of: pipeline, bundle, status) }
        let token = makeToken()
        defer { release(token) }
        let temporary = layout.temporarySet(token, of: pipeline)
        try onFiles { (files) throws(SystemCallError) in
            // An earlier process may have left a temporary directory.
            try self.removeSet(temporary, files)
            _ = try files.makeDirectory(temporary, mode: CacheLayout.setMode)
            do throws(SystemCallError) {
                for member in bundle.members {
                    try files.write(
                        bundle.content(of: member), to: temporary + "/" + member.name, mode: status.mode,
                        group: status.group)
                }
                try files.synchronizeDirectory(temporary)
                try files.rename(temporary, to: directory)
            } catch {
                try? files.removeFlatDirectory(temporary)
                throw error
            }
            try files.synchronizeDirectory(self.layout.sets(of: pipeline))
        }
    }

    /// Repairs the directory of a generation in its place, file by file: readers find only content of the generation at
    /// any moment. Other objects in the directory are moved aside.
    private func repairSet(
        _ directory: String, of pipeline: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) {
        let errors = try errors(ofSet: directory, bundle, status)
        try onFiles { (files) throws(SystemCallError) in
            // Sets the mode of the directory again.
            _ = try files.makeDirectory(directory, mode: CacheLayout.setMode)
        }
        let token = makeToken()
        defer { release(token) }
        for (name, member) in errors {
            let path = directory + "/" + name
            guard let member else {
                if CacheLayout.isTemporary(name) { try remove(path) } else { try moveToStrays(path) }
                continue
            }
            if try isDirectory(path) { try moveToStrays(path) }
            let temporary = layout.temporaryFile(token, in: directory)
            try onFiles { (files) throws(SystemCallError) in
                try files.unlink(temporary)
                try files.write(
                    bundle.content(of: member), to: temporary, mode: status.mode, group: status.group)
                try files.rename(temporary, to: path)
            }
        }
        // Even if there was no error, the directory may not have been flushed by an interrupted process.
        try onFiles { (files) throws(SystemCallError) in
            try files.synchronizeDirectory(directory)
            try files.synchronizeDirectory(self.layout.sets(of: pipeline))
        }
    }

    /// The names in a directory that differ from the generation, with the expected file; nil: no file is expected.
    private func errors(
        ofSet directory: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) -> [(name: String, member: FileBundle.Member?)] {
        var errors: [(name: String, member: FileBundle.Member?)] = []
        for member in bundle.members {
            let path = directory + "/" + member.name
            let found = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
            guard let found, found.isRegularFile, found.mode == status.mode, found.group == status.group,
                try holds(bundle.content(of: member), path)
            else {
                errors.append((member.name, member))
                continue
            }
        }
        let names = Set(bundle.members.map(\.name))
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) })
        where !names.contains(entry.name) {
            errors.append((entry.name, nil))
        }
        return errors
    }

    private func holds(_ content: [UInt8], _ path: String) throws(CacheError) -> Bool {
        var (place, isSame) = (0, true)
        let isThere = try fileSystem.readFile(path) { (bytes) throws(CacheError) in
            let rest = content.dropFirst(place)
            isSame = isSame && bytes.count <= rest.count && rest.prefix(bytes.count).elementsEqual(bytes)
            place += bytes.count
        }
        return isThere && isSame && place == content.count
    }

    private func bundle(at path: String) throws(CacheError) -> (bundle: FileBundle, status: FileStatus) {
        let status = try onFiles { (files) throws(SystemCallError) in try files.status(path) }
        guard let status, status.isRegularFile else { throw .unreadable }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: status.identity.size))
        let isThere = try fileSystem.readFile(path) { (piece) throws(CacheError) in bytes += piece }
        guard isThere else { throw .unreadable }
        return (try FileBundle(bytes), status)
    }

    private func makeSetDirectories(for pipeline: String, _ files: any FileSystem) throws(SystemCallError) {
        if try files.status(layout.cacheDirectory) == nil { try makeDirectories(for: pipeline, files) }
        for (path, parent) in [
            (layout.sets, layout.cacheDirectoryItself), (layout.sets(of: pipeline), layout.sets),
        ] {
            _ = try isDirectory(path, orMoveAside: files)
            if try files.makeDirectory(path, mode: CacheLayout.setsMode) { try files.synchronizeDirectory(parent) }
        }
    }

    /// Moves an object aside that is in the place of a directory; a symbolic link is never followed.
    ///
    /// - Returns: whether the directory exists.
    private func isDirectory(_ path: String, orMoveAside files: any FileSystem) throws(SystemCallError) -> Bool {
        guard let status = try files.status(path) else { return false }
        if !status.isDirectory { try moveToStrays(path, files) }
        return status.isDirectory
    }

    /// Removes the directory of a generation, or an unfinished directory. If the object is not a directory, it is
    /// foreign and is moved aside.
    func removeSet(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        if try isDirectory(path, orMoveAside: files) { try files.removeFlatDirectory(path) }
    }

    /// Whether the generation to which a file of the cache belongs has a directory. False if the file does not belong
    /// to a generation.
    func hasSet(_ path: String?, of pipeline: String) throws(CacheError) -> Bool {
        guard let name = path?.split(separator: "/").last, let content = StoredContent(name: String(name)) else {
            return false
        }
        return try isDirectory(layout.set(try setName(of: content, in: pipeline), of: pipeline))
    }

    // MARK: The link

    /// Makes the link lead to a generation's directory. A directory in the place of the link is foreign, and is moved
    /// aside.
    ///
    /// - Parameter set: see ``setName(of:in:)``.
    /// - Returns: whether the link was changed.
    func showSet(
        _ set: StoredContent, of pipeline: String, at link: String, _ files: any FileSystem
    ) throws(SystemCallError) -> Bool {
        let path = layout.reader(link)
        let target = CacheLayout.target(set, of: pipeline)
        if try files.linkTarget(path) == target { return false }
        if try files.status(path)?.isDirectory == true { try moveToStrays(path, files) }
        let token = makeToken()
        defer { release(token) }
        try files.replace(path, withSymbolicLinkTo: target, by: layout.readerTemporary(token))
        return true
    }

    /// The name of the directory that the link leads to; nil if it does not lead to a directory of this pipeline.
    func shownSet(of pipeline: String, at link: String) throws(SystemCallError) -> String? {
        let prefix = CacheLayout.targetPrefix(of: pipeline)
        guard let target = try fileSystem.linkTarget(layout.reader(link)), target.hasPrefix(prefix) else { return nil }
        return String(target.dropFirst(prefix.utf8.count))
    }

    /// Whether the link leads to the directory of the current generation; always true for one file.
    func isSetShown(_ publication: IndexedPublication) throws(CacheError) -> Bool {
        guard let link = publication.pipeline.link else { return true }
        let pipeline = publication.pipeline.name
        let set = try setName(of: publication.generation.content, in: pipeline)
        return try onFiles { (files) throws(SystemCallError) in
            guard try self.shownSet(of: pipeline, at: link) == set.name else { return false }
            for path in [self.layout.sets(of: pipeline), self.layout.set(set, of: pipeline)] {
                guard try files.status(path)?.isDirectory == true else { return false }
            }
            return true
        }
    }

    /// Makes directory and link agree with the stamp of the current generation. Does nothing for one file.
    ///
    /// - Parameter verifiesAll: check all files of the directory.
    /// - Returns: whether a change was necessary.
    @discardableResult
    func agreeSet(with publication: IndexedPublication, verifiesAll: Bool = false) throws(CacheError) -> Bool {
        guard let link = publication.pipeline.link, !publication.isWithdrawn else { return false }
        let isShown = try isSetShown(publication)
        if isShown, !verifiesAll { return false }
        let (content, pipeline) = (publication.generation.content, publication.pipeline.name)
        let set = try setName(of: content, in: pipeline)
        let stamp = layout.reader(publication.file)
        var isThere = try isDirectory(layout.sets(of: pipeline))
        if isThere { isThere = try isDirectory(layout.set(set, of: pipeline)) }
        if verifiesAll || !isThere { try makeSet(content, of: pipeline, from: stamp) }
        return try onFiles { (files) throws(SystemCallError) in
            guard try self.showSet(set, of: pipeline, at: link, files) else { return !isThere }
            try files.synchronizeDirectory(self.layout.current)
            return true
        }
    }

    /// The same, after index and stamp were made to agree.
    ///
    /// - Returns: the generation whose directory or link was repaired, if any.
    func reconcileSet(of pipeline: String, verifiesAll: Bool) throws(CacheError) -> Int64? {
        let (row, publication) = try withIndex { (index) throws(SQLiteError) in
            (try index.pipeline(pipeline), try index.publication(of: pipeline))
        }
        guard let row, let link = row.link, let file = row.file else { return nil }
        if row.withdrawnAt != nil {
            try hideSet(of: pipeline, at: link)
            return nil
        }
        let status = try onFiles { (files) throws(SystemCallError) in try files.status(self.layout.reader(file)) }
        guard let publication else {
            // The first commit was interrupted after the step of the link.
            if status == nil { try hideSet(of: pipeline, at: link) }
            return nil
        }
        guard status?.identity == publication.generation.identity else { return nil }
        do throws(CacheError) {
            return try agreeSet(with: publication, verifiesAll: verifiesAll)
                ? publication.generation.content.number : nil
        } catch .noBundle {
            // The next commit replaces this content.
            return nil
        }
    }

    func hideSet(of pipeline: String, at link: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            guard try self.shownSet(of: pipeline, at: link) != nil else { return }
            try files.unlink(self.layout.reader(link))
            try files.synchronizeDirectory(self.layout.current)
        }
    }

    // MARK: Removing

    /// Removes the directories of generations that are no longer kept.
    ///
    /// - Parameter previous: the name of the directory that readers saw before: readers may still use it.
    func sweepSets(of row: IndexedPipeline, previous: String?) {
        // Directories that stay now are removed after a later commit.
        guard let kept = try? withIndex({ (index) throws(SQLiteError) in try index.generations(of: row.id) }),
            let entries = try? fileSystem.list(layout.sets(of: row.name)),
            let sets = try? kept.map({ (generation) throws(CacheError) in
                try setName(of: generation.content, in: row.name).name
            })
        else { return }
        let names = Set(sets + [previous].compactMap(\.self))
        for entry in entries where !names.contains(entry.name) {
            guard CacheLayout.isTemporary(entry.name) || StoredContent(name: entry.name) != nil else { continue }
            try? removeSet(layout.sets(of: row.name) + "/" + entry.name, fileSystem)
        }
    }

    /// Removes, at the start, the unfinished directories of an earlier process. A failure does no harm.
    func removeUnfinishedSets() {
        for pipeline in (try? fileSystem.list(layout.sets)) ?? [] {
            let directory = layout.sets(of: pipeline.name)
            for entry in (try? fileSystem.list(directory)) ?? [] where CacheLayout.isTemporary(entry.name) {
                try? remove(leftover: entry.name, in: directory, of: nil)
            }
        }
    }

    /// Removes the link of a pipeline before its content is removed.
    func removeLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        try hideSet(of: row.name, at: link)
    }

    /// Removes all directories of a pipeline; foreign objects are moved aside.
    func removeSets(of pipeline: String) throws(CacheError) {
        let directory = layout.sets(of: pipeline)
        try onFiles { (files) throws(SystemCallError) in
            guard try self.isDirectory(directory, orMoveAside: files) else { return }
            for entry in try files.list(directory) {
                let path = directory + "/" + entry.name
                if StoredContent(name: entry.name) != nil || CacheLayout.isTemporary(entry.name) {
                    try self.removeSet(path, files)
                } else {
                    try self.moveToStrays(path, files)
                }
            }
            try files.removeDirectory(directory)
            if try files.status(directory) != nil {
                throw SystemCallError(call: "rmdir", path: directory, errno: SystemCallError.notEmpty)
            }
        }
    }

    /// Removes the links, stamps and directories that a pipeline used under former names.
    func removeFormerSets(of row: IndexedPipeline) throws(CacheError) {
        for link in row.formerSets where link != row.link {
            let stamp = link + CacheLayout.stampSuffix
            let (ofLink, ofStamp) = try withIndex { (index) throws(SQLiteError) in
                (try index.owner(of: link), try index.owner(of: stamp))
            }
            // The pipeline may use the name for a file now.
            if ofLink == nil || ofLink == row.name { try hideSet(of: row.name, at: link) }
            guard ofStamp == nil else { continue }
            try onFiles { (files) throws(SystemCallError) in
                let path = self.layout.reader(stamp)
                if try files.status(path)?.isRegularFile == true { try files.unlink(path) }
            }
        }
        if !row.isSet { try removeSets(of: row.name) }
        try withIndex { (index) throws(SQLiteError) in try index.forgetFormerSets(row.formerSets, of: row.name) }
    }

    /// Removes the files of content that was forgotten because the pipeline changed between one file and several files.
    func removeForgotten(_ forgotten: [OrphanedContent]) {
        for content in forgotten {
            // If a file cannot be removed, the next start finds it.
            for generation in content.generations {
                try? fileSystem.unlink(layout.generation(generation, of: content.pipeline))
            }
            if let rejected = content.rejected {
                try? fileSystem.unlink(layout.rejected(rejected, of: content.pipeline))
            }
        }
    }

    // MARK: Examining

    /// Compares link and directory with the stamp, which is undamaged.
    func examineSet(of row: IndexedPipeline, _ examination: inout CacheExamination) throws(CacheError) {
        guard let link = row.link else { return }
        let directory = layout.sets(of: row.name)
        // If this is not a directory, `strays()` reports it; a symbolic link to a directory is not followed.
        let isOwn = try isDirectory(directory)
        for entry in try onFiles({ (files) throws(SystemCallError) in try files.list(directory) }) {
            let path = directory + "/" + entry.name
            if CacheLayout.isTemporary(entry.name) {
                if !isInUse(entry.name) { examination.add(CacheFinding(.unfinished, of: row.name, path: path)) }
            } else if StoredContent(name: entry.name) == nil {
                examination.add(CacheFinding(.stray, of: row.name, path: path))
            }
        }
        let known = try withIndex { (index) throws(SQLiteError) in try index.publication(of: row.name) }
        guard let publication = known else { return }
        let content = publication.generation.content
        let set = try setName(of: content, in: row.name)
        var finding = CacheFinding(.setDamaged, of: row.name, generation: content.number, path: layout.reader(link))
        let shown = try onFiles { (_) throws(SystemCallError) in try self.shownSet(of: row.name, at: link) }
        if publication.isWithdrawn {
            finding.detail = "the copy is withdrawn"
            if shown != nil { examination.add(finding) }
            return
        }
        // Until the next commit, readers see link and stamp under the former name.
        let stamp = layout.reader(publication.file)
        guard try onFiles({ (files) throws(SystemCallError) in try files.status(stamp) }) != nil else { return }
        if shown != set.name {
            finding.detail = "the link does not lead to the directory of this generation"
            examination.add(finding)
        }
        let (bundle, status): (FileBundle, FileStatus)
        do throws(CacheError) {
            (bundle, status) = try self.bundle(at: stamp)
        } catch .noBundle(let error) {
            finding.detail = "the copy is not a bundle of files, and the next run writes it again: \(error)"
            return examination.add(finding)
        }
        finding.path = layout.set(set, of: row.name)
        guard isOwn, try isDirectory(finding.path) else {
            finding.detail = "the directory is missing"
            return examination.add(finding)
        }
        for (name, member) in try errors(ofSet: finding.path, bundle, status) {
            var error = finding
            error.path += "/" + name
            error.detail = member == nil ? "it is not a file of the generation" : nil
            examination.add(error)
        }
    }

    /// Moves an object aside that is in the place of the link.
    func clearLink(of row: IndexedPipeline) throws(CacheError) {
        guard let link = row.link else { return }
        let path = layout.reader(link)
        let isOurs = try onFiles { (files) throws(SystemCallError) in
            try files.linkTarget(path)?.hasPrefix(CacheLayout.targetPrefix(of: row.name)) == true
        }
        if !isOurs { try moveToStrays(path) }
    }
}
