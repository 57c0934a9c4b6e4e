/// A pipeline as its configuration declares it: where its data comes from, when it runs, what it must satisfy and what
/// file it becomes. A value: two equal definitions behave alike, so that a reload can leave unchanged pipelines alone.
package struct PipelineDefinition: Hashable, Sendable {
    /// The pipeline's name: its file's, without `.yaml`. Letters, digits, `-`, `_` and `.`, at most 64 bytes.
    package var name: String
    /// One line for people.
    package var description: String?
    /// Where its data comes from: a source, and what is fetched for each item of it.
    @Shared package var stage: StageDefinition
    /// A jq program that makes the snapshot from the data; nil leaves it as it is.
    package var transform: String?
    @Shared package var refresh: RefreshPolicy
    @Shared package var check: CheckRules
    package var cache: CacheRules
    /// What of the source can be changed while the daemon runs; at most ``ParameterLimits/perPipeline``.
    package var parameters: [ParameterDefinition]
    /// What is run after each change of what readers see; at most ``HookDefinition/perPipeline``.
    package var hooks: [HookDefinition] = []

    package init(
        name: String, description: String? = nil, source: SourceDefinition, transform: String? = nil,
        refresh: RefreshPolicy = RefreshPolicy(), check: CheckRules = CheckRules(), cache: CacheRules,
        parameters: [ParameterDefinition] = []
    ) {
        self.init(
            name: name, description: description, stage: StageDefinition(source), transform: transform,
            refresh: refresh, check: check, cache: cache, parameters: parameters)
    }

    package init(
        name: String, description: String? = nil, stage: StageDefinition, transform: String? = nil,
        refresh: RefreshPolicy = RefreshPolicy(), check: CheckRules = CheckRules(), cache: CacheRules,
        parameters: [ParameterDefinition] = []
    ) {
        self.name = name
        self.description = description
        self.stage = stage
        self.transform = transform
        self.refresh = refresh
        self.check = check
        self.cache = cache
        self.parameters = parameters
    }

    /// Its first source, the only one if nothing is fetched for each of its items.
    package var source: SourceDefinition {
        get { stage.source }
        set { stage.source = newValue }
    }

    /// All its sources, the first one first.
    package var sources: [SourceDefinition] { stage.all.map(\.source) }
}

/// Where a pipeline's data comes from.
package enum SourceDefinition: Hashable, Sendable {
    /// An HTTP or HTTPS request.
    case http(HTTPSource)
    /// A command: an absolute path and its arguments; its standard output is the data.
    case command([String])
    /// A file of this machine, by its absolute path.
    case file(String)
    /// The copy that another pipeline keeps, by the name of its file.
    case copy(of: String, file: String)
    /// Several, which are asked together and make one JSON object.
    indirect case joined([JoinedSource])

    /// Whether data from here needs the network, unless the configuration says otherwise: a URL does whose host is not
    /// this machine.
    package var needsNetworkByDefault: Bool {
        switch self {
        // Where data leads to is not known before; who has that data says whether it is elsewhere.
        case .http(let source): !source.isLocal && source.placeOfURL == nil
        case .command, .file, .copy: false
        case .joined(let sources): sources.contains { $0.stage.all.contains(where: \.source.needsNetworkByDefault) }
        }
    }
}

/// One of several sources that are joined.
package struct JoinedSource: Hashable, Sendable {
    /// The member of the object that its data becomes.
    package var name: String
    package var stage: StageDefinition

    package init(_ name: String, _ stage: StageDefinition) {
        self.name = name
        self.stage = stage
    }
}

/// Where and how a pipeline's snapshots are kept.
package struct CacheRules: Hashable, Sendable {
    /// The file's name below `current/`: one path component.
    package var file: String
    /// What a program's strings become: JSON, or lines of text.
    package var format: ContentFormat
    /// Permission bits; nil: by the source, see ``PipelineDefinition/cacheMode``.
    package var mode: UInt32?
    /// The name of the group that owns the file; nil: the service's own.
    package var group: String?
    /// How many generations are kept, the current one included; at least 1.
    package var keep: Int
    /// A copy that was last confirmed longer ago has expired; nil: none ever does.
    package var maxAge: Duration?
    /// Readers do not find a copy that has expired.
    package var withdraws = false
    /// Where an item's key is, as jq writes it: names, each after a dot, or a dot alone for the item itself. Nil: content
    /// is compared as it is.
    package var key: String?
    /// The files that the snapshot is split into, at most ``CachedFile/perPipeline``, by name; none: it is one file.
    package var files: [CachedFile] = []

    /// How many generations are kept where nothing is configured.
    package static let defaultKeep = 5

    package init(
        file: String, format: ContentFormat = .json, mode: UInt32? = nil, group: String? = nil,
        keep: Int = CacheRules.defaultKeep,
        maxAge: Duration? = nil, key: String? = nil
    ) {
        self.file = file
        self.format = format
        self.mode = mode
        self.group = group
        self.keep = keep
        self.maxAge = maxAge
        self.key = key
    }

    /// Whether snapshots are kept in the same place in the same way, whatever is said of their age
    /// and of how they are compared.
    func keepsTheSame(as other: CacheRules) -> Bool {
        var own = self
        own.maxAge = other.maxAge
        own.withdraws = other.withdraws
        own.key = other.key
        return own == other
    }
}
