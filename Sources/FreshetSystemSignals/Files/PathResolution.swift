import FreshetEventLoop
import Glibc

/// The resolution of a path, directory by directory and link by link: the directories to watch for changes of the path,
/// and the file at its end.
struct PathResolution: Sendable {
    /// A directory on the path, and its role.
    struct Step: Hashable, Sendable {
        enum Role: Hashable, Sendable {
            /// The path leads through it: it may be renamed or removed as a whole.
            case passed
            /// One of its names is a symbolic link, or is missing.
            case name(String)
            /// One of its names is the file.
            case file(String)
            /// The path names this directory.
            case entries
        }

        /// Its path, without symbolic links.
        var directory: String
        var identity: FileIdentity
        var role: Role
    }

    /// The maximum number of symbolic links: the kernel's limit (path_resolution(7)).
    static let mostLinks = 40

    private(set) var steps: [Step] = []
    /// The file at the end; nil: it does not exist, or cannot be seen.
    private(set) var end: FileSnapshot?
    /// Why the file cannot be seen; a missing name is not an obstacle.
    private(set) var obstacle: SystemCallError?

    private typealias Place = (path: String, identity: FileIdentity)

    /// The resolution of a path that was not checked yet.
    init() {}

    /// Resolves a path now. It may block.
    init(_ path: String, _ calls: FileCalls = .kernel) {
        walk(path, calls)
    }

    private mutating func walk(_ path: String, _ calls: FileCalls) {
        guard let root = try? calls.status("/") else { return }
        var places: [Place] = [("/", FileSnapshot(root).identity)]
        var names = Array(path.split(separator: "/").map(String.init).reversed())
        var links = 0
        end = FileSnapshot(root)
        while let name = names.popLast() {
            if name == "." { continue }
            if name == ".." {
                if places.count > 1 { places.removeLast() }
                continue
            }
            let here = places[places.count - 1]
            let full = here.path == "/" ? "/\(name)" : "\(here.path)/\(name)"
            let status: stat
            do throws(SystemCallError) {
                status = try calls.status(full)
            } catch {
                return stop(at: here, name, error.errno == ENOENT ? nil : error)
            }
            switch status.st_mode & S_IFMT {
            case S_IFLNK:
                links += 1
                steps.append(Step(directory: here.path, identity: here.identity, role: .name(name)))
                guard links <= Self.mostLinks, let target = calls.target(full) else {
                    return stop(at: here, name, SystemCallError("open", errno: ELOOP, subject: path))
                }
                if target.hasPrefix("/") { places.removeLast(places.count - 1) }
                names += target.split(separator: "/").map(String.init).reversed()
            case S_IFDIR:
                places.append((full, FileSnapshot(status).identity))
                steps.append(Step(directory: full, identity: FileSnapshot(status).identity, role: .passed))
            default:
                // A file with further names after it: they cannot exist until the file becomes a directory.
                guard names.isEmpty else { return stop(at: here, name, nil) }
                steps.append(Step(directory: here.path, identity: here.identity, role: .file(name)))
                end = FileSnapshot(status)
                return
            }
        }
        let last = places[places.count - 1]
        do throws(SystemCallError) {
            end = FileSnapshot(try calls.status(last.path))
        } catch {
            end = nil
            if error.errno != ENOENT { obstacle = error }
        }
        steps.append(Step(directory: last.path, identity: last.identity, role: .entries))
    }

    private mutating func stop(at place: Place, _ name: String, _ obstacle: SystemCallError?) {
        steps.append(Step(directory: place.path, identity: place.identity, role: .name(name)))
        end = nil
        self.obstacle = obstacle
    }
}

extension PathResolution.Step {
    /// The events for which the directory is watched. If the path only leads through it, its names do not matter.
    var events: InotifyEvents {
        let itself: InotifyEvents = [.selfRemoved, .selfMoved]
        let names: InotifyEvents = [.created, .removed, .movedAway, .movedHere]
        return switch role {
        case .passed: itself
        case .name: itself.union(names)
        case .file, .entries: itself.union(names).union([.written, .notUnlinked])
        }
    }

    /// The relevant name in the directory; nil: all or none.
    var name: String? {
        switch role {
        case .passed, .entries: nil
        case .name(let name), .file(let name): name
        }
    }

    /// The meaning of an event of this directory for the path; empty: none.
    func meaning(of event: InotifyEvent) -> FileEvents {
        if !event.events.isDisjoint(with: [.ended, .unmounted]) { return [.look, .rewatch] }
        guard let name = event.name else {
            return event.events.isDisjoint(with: [.selfRemoved, .selfMoved]) ? [] : .look
        }
        switch role {
        case .passed: return []
        case .entries: return .entries
        case .name(let own): return name.utf8.elementsEqual(own.utf8) ? .look : []
        case .file(let own):
            guard name.utf8.elementsEqual(own.utf8) else { return [] }
            if !event.events.isDisjoint(with: [.created, .movedHere]) { return .arrived }
            return event.events.contains(.written) ? .written : .look
        }
    }
}
