/// Makes, repairs and compares the directories of pipelines with several files. Callers hold the lock of the pipeline.
struct FileSetWriter: Sendable {
    let context: CacheContext

    /// Makes the directory of a generation, or repairs an existing directory.
    ///
    /// - Parameters:
    ///   - set: the name of the directory: see ``FileSetStore/name(of:in:)``.
    ///   - path: a file with the generation's content, mode and group.
    func make(_ set: StoredContent, of pipeline: String, from path: String) throws(CacheError) {
        let (bundle, status) = try bundle(at: path)
        let directory = context.layout.set(set, of: pipeline)
        let isThere = try context.onFiles { (files) throws(SystemCallError) in
            try makeDirectories(for: pipeline, files)
            return try context.isDirectory(directory, orMoveAside: files)
        }
        if isThere { return try repair(directory, of: pipeline, bundle, status) }
        let token = context.names.make()
        defer { context.names.release(token) }
        let temporary = context.layout.temporarySet(token, of: pipeline)
        var cause: CacheError?
        do throws(CacheError) {
            try make(bundle, status, at: temporary, named: directory, &cause)
        } catch {
            throw cause ?? error
        }
        try context.onFiles { (files) throws(SystemCallError) in
            try files.synchronizeDirectory(context.layout.sets(of: pipeline))
        }
    }

    /// Makes the directory under a temporary name, and gives it its name.
    ///
    /// - Parameter cause: gets the error, with the space that was left before the unfinished directory was removed.
    private func make(
        _ bundle: FileBundle, _ status: FileStatus, at temporary: String, named directory: String,
        _ cause: inout CacheError?
    ) throws(CacheError) {
        try context.onFiles { (files) throws(SystemCallError) in
            // An earlier process may have left a temporary directory.
            try context.removeSet(temporary, files)
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
                cause = context.cacheError(error)
                try? files.removeFlatDirectory(temporary)
                throw error
            }
        }
    }

    /// Repairs the directory of a generation in its place, file by file: readers find only content of the generation at
    /// any moment. Other objects in the directory are moved aside.
    private func repair(
        _ directory: String, of pipeline: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) {
        let errors = try errors(ofSet: directory, bundle, status)
        try context.onFiles { (files) throws(SystemCallError) in
            // Sets the mode of the directory again.
            _ = try files.makeDirectory(directory, mode: CacheLayout.setMode)
        }
        let token = context.names.make()
        defer { context.names.release(token) }
        for (name, member) in errors {
            let path = directory + "/" + name
            guard let member else {
                if CacheLayout.isTemporary(name) { try context.remove(path) } else { try context.moveToStrays(path) }
                continue
            }
            if try context.isDirectory(path) { try context.moveToStrays(path) }
            let temporary = context.layout.temporaryFile(token, in: directory)
            try context.onFiles { (files) throws(SystemCallError) in
                try files.unlink(temporary)
                try files.write(
                    bundle.content(of: member), to: temporary, mode: status.mode, group: status.group)
                try files.rename(temporary, to: path)
            }
        }
        // Even if there was no error, the directory may not have been flushed by an interrupted process.
        try context.onFiles { (files) throws(SystemCallError) in
            try files.synchronizeDirectory(directory)
            try files.synchronizeDirectory(context.layout.sets(of: pipeline))
        }
    }

    /// The names in a directory that differ from the generation, with the expected file; nil: no file is expected.
    func errors(
        ofSet directory: String, _ bundle: FileBundle, _ status: FileStatus
    ) throws(CacheError) -> [(name: String, member: FileBundle.Member?)] {
        var errors: [(name: String, member: FileBundle.Member?)] = []
        for member in bundle.members {
            let path = directory + "/" + member.name
            let found = try context.onFiles { (files) throws(SystemCallError) in try files.status(path) }
            guard let found, found.isRegularFile, found.mode == status.mode, found.group == status.group,
                try holds(bundle.content(of: member), path)
            else {
                errors.append((member.name, member))
                continue
            }
        }
        let names = Set(bundle.members.map(\.name))
        for entry in try context.onFiles({ (files) throws(SystemCallError) in try files.list(directory) })
        where !names.contains(entry.name) {
            errors.append((entry.name, nil))
        }
        return errors
    }

    private func holds(_ content: [UInt8], _ path: String) throws(CacheError) -> Bool {
        var (place, isSame) = (0, true)
        let isThere = try context.fileSystem.readFile(path) { (bytes) throws(CacheError) in
            let rest = content.dropFirst(place)
            isSame = isSame && bytes.count <= rest.count && rest.prefix(bytes.count).elementsEqual(bytes)
            place += bytes.count
        }
        return isThere && isSame && place == content.count
    }

    func bundle(at path: String) throws(CacheError) -> (bundle: FileBundle, status: FileStatus) {
        let status = try context.onFiles { (files) throws(SystemCallError) in try files.status(path) }
        guard let status, status.isRegularFile else { throw .unreadable }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(clamping: status.identity.size))
        let isThere = try context.fileSystem.readFile(path) { (piece) throws(CacheError) in bytes += piece }
        guard isThere else { throw .unreadable }
        return (try FileBundle(bytes), status)
    }

    private func makeDirectories(for pipeline: String, _ files: any FileSystem) throws(SystemCallError) {
        if try files.status(context.layout.cacheDirectory) == nil { try context.makeDirectories(for: pipeline, files) }
        for (path, parent) in [
            (context.layout.sets, context.layout.cacheDirectoryItself),
            (context.layout.sets(of: pipeline), context.layout.sets),
        ] {
            _ = try context.isDirectory(path, orMoveAside: files)
            if try files.makeDirectory(path, mode: CacheLayout.setsMode) { try files.synchronizeDirectory(parent) }
        }
    }
}
