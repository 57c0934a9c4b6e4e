internal import FreshetModel

/// A pipeline as its configuration declares it: where its data comes from, when it runs, what it must satisfy and what
/// file it becomes. It is a value: two equal definitions behave alike, so a reload does not touch unchanged pipelines.
package struct PipelineDefinition: Hashable, Sendable {
    /// Copies share the content: a definition is passed around often and changed never.
    @Shared private var content: Content

    private struct Content: Hashable, Sendable {
        var name: String
        var description: String?
        @Shared var stage: StageDefinition
        var transform: String?
        @Boxed var template: TemplateDefinition?
        @Shared var refresh: RefreshPolicy
        @Shared var check: CheckRules
        var cache: CacheRules
        var parameters: [ParameterDefinition]
        var hooks: [HookDefinition] = []
        @Boxed var fleet: FleetSharing?
        var exactTexts = ExactTexts()

        mutating func share(with other: Content) {
            // Texts that are equal may have different bytes.
            guard exactTexts == other.exactTexts else { return }
            _refresh.share(with: other._refresh)
            _check.share(with: other._check)
            cache.share(with: other.cache)
        }
    }

    /// The pipeline's name: the name of its file without `.yaml`. Letters, digits, `-`, `_` and `.`, at most 64 bytes.
    package var name: String {
        get { content.name }
        set { content.name = newValue }
    }
    /// One line of text for people.
    package var description: String? {
        get { content.description }
        set { content.description = newValue }
    }
    /// Where its data comes from: a source, and further sources for each of its items.
    package var stage: StageDefinition {
        get { content.stage }
        set { content.stage = newValue }
    }
    /// A jq program that makes the snapshot, or the input of the template, from the data; nil leaves it as it is.
    package var transform: String? {
        get { content.transform }
        set { content.transform = newValue }
    }
    /// The template that makes the snapshot from the data, after ``transform``; nil: there is none.
    package var template: TemplateDefinition? {
        get { content.template }
        set { content.template = newValue }
    }
    package var refresh: RefreshPolicy {
        get { content.refresh }
        set { content.refresh = newValue }
    }
    package var check: CheckRules {
        get { content.check }
        set { content.check = newValue }
    }
    package var cache: CacheRules {
        get { content.cache }
        set { content.cache = newValue }
    }
    /// The values of the source that can be changed while the daemon runs; at most ``ParameterLimits/perPipeline``.
    package var parameters: [ParameterDefinition] {
        get { content.parameters }
        set { content.parameters = newValue }
    }
    /// The hooks after each change of the published file; at most ``HookDefinition/perPipeline``.
    package var hooks: [HookDefinition] {
        get { content.hooks }
        set { content.hooks = newValue }
    }
    /// Nil: its content is not shared with other machines.
    package var fleet: FleetSharing? {
        get { content.fleet }
        set { content.fleet = newValue }
    }

    /// What `==` of the other properties does not see.
    package var exactTexts: ExactTexts {
        get { content.exactTexts }
        set { content.exactTexts = newValue }
    }

    /// The refresh policy, for another property that shares the instance.
    package var sharedRefresh: Shared<RefreshPolicy> { content.$refresh }

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
        template: TemplateDefinition? = nil, refresh: RefreshPolicy = RefreshPolicy(),
        check: CheckRules = CheckRules(), cache: CacheRules, parameters: [ParameterDefinition] = [],
        hooks: [HookDefinition] = [], fleet: FleetSharing? = nil
    ) {
        content = Content(
            name: name, description: description, stage: stage, transform: transform, template: template,
            refresh: refresh, check: check, cache: cache, parameters: parameters, hooks: hooks, fleet: fleet)
    }

    /// Uses the refresh policy, the checks and the rules of the cache of another definition where they are equal, so
    /// that they are in memory once.
    package mutating func share(with other: PipelineDefinition) {
        // A change makes another instance of the content.
        if sharedRefresh.isSame(as: other.sharedRefresh), content.$check.isSame(as: other.content.$check),
            content.cache.isShared(with: other.content.cache)
        {
            return
        }
        content.share(with: other.content)
    }

    /// The first source; the only one unless there is a fan-out.
    package var source: SourceDefinition {
        get { stage.source }
        set { stage.source = newValue }
    }

    /// All sources, the first source first.
    package var sources: [SourceDefinition] { stage.hasStages ? stage.all.map(\.source) : [stage.source] }

    /// Whether a run makes HTTP requests.
    package var makesRequests: Bool {
        stage.source.makesRequests || sources.contains(where: \.makesRequests) || !check.proofSources.isEmpty
            || refresh.needsNetwork.probe != nil
    }
}

/// Where a pipeline's data comes from.
package enum SourceDefinition: Hashable, Sendable {
    /// An HTTP or HTTPS request.
    case http(HTTPSource)
    /// A command: an absolute path and its arguments; its standard output is the data.
    case command([String])
    /// A file of this machine, by its absolute path.
    case file(String)
    /// The copy of another pipeline, by the name of its file.
    case copy(of: String, file: String)
    /// Several sources, which are read together and become one JSON object.
    indirect case joined([JoinedSource])

    fileprivate var makesRequests: Bool {
        switch self {
        case .http: true
        case .command, .file, .copy: false
        case .joined(let sources): sources.contains { $0.stage.all.contains(where: \.source.makesRequests) }
        }
    }

    /// Whether a request for the source can be conditional. A command always runs.
    package var hasValidators: Bool {
        switch self {
        case .http, .file, .copy: true
        case .command, .joined: false
        }
    }

    /// Whether the source needs the network unless configured: it does if it is a URL whose host is not this machine.
    package var needsNetworkByDefault: Bool {
        switch self {
        // The host of a URL from data is not known in advance; the source of that data decides.
        // A mirror on this machine works without a network.
        case .http(let source):
            // Most sources have no mirrors: they are not copied.
            !(source.mirrors == nil ? source.isLocal : source.alternatives.contains(where: \.isLocal))
                && source.urlPlaceholder == nil
        case .command, .file, .copy: false
        case .joined(let sources): sources.contains { $0.stage.all.contains(where: \.source.needsNetworkByDefault) }
        }
    }
}

/// One of several joined sources.
package struct JoinedSource: Hashable, Sendable {
    /// The name of the object's member for its data.
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
    /// The form in which a program's strings are written: JSON, or lines of text.
    package var format: ContentFormat {
        get { rest.format }
        set { change { $0.format = newValue } }
    }
    /// Permission bits; nil: they depend on the source, see ``PipelineDefinition/cacheMode``.
    package var mode: UInt32? {
        get { rest.mode }
        set { change { $0.mode = newValue } }
    }
    /// The name of the group that owns the file; nil: the service's group.
    package var group: String? {
        get { rest.group }
        set { change { $0.group = newValue } }
    }
    /// The number of generations that are kept, including the current one; at least 1.
    package var keep: Int {
        get { rest.keep }
        set { change { $0.keep = newValue } }
    }
    /// The age since the last confirmation at which a copy expires; nil: it never expires.
    package var maxAge: Duration? {
        get { rest.maxAge }
        set { change { $0.maxAge = newValue } }
    }
    /// Whether an expired copy is withdrawn from readers.
    package var withdraws: Bool {
        get { rest.withdraws }
        set { change { $0.withdraws = newValue } }
    }
    /// The jq path of an item's key: names, each after a dot, or a dot alone for the item itself. Nil: contents are
    /// compared without keys.
    package var key: String? {
        get { rest.key }
        set { change { $0.key = newValue } }
    }
    /// The files that the snapshot is split into, at most ``CachedFile/perPipeline``, by name; empty: the snapshot is
    /// one file.
    package var files: [CachedFile] {
        get { rest.files }
        set { change { $0.files = newValue } }
    }

    /// All but the name: thousands of pipelines often have the same rules, which are in memory once.
    private struct Rest: Hashable {
        var format: ContentFormat
        var mode: UInt32?
        var group: String?
        var keep: Int
        var maxAge: Duration?
        var withdraws = false
        var key: String?
        var files: [CachedFile] = []
    }

    @Shared private var rest: Rest

    private mutating func change(_ body: (inout Rest) -> Void) {
        var new = rest
        body(&new)
        if new != rest { rest = new }
    }

    /// Uses the rules of another pipeline, except for the name, if they are equal.
    mutating func share(with other: Self) { _rest.share(with: other._rest) }

    /// Whether all but the name is the same instance.
    func isShared(with other: Self) -> Bool { $rest.isSame(as: other.$rest) }

    /// The number of generations that are kept unless configured.
    package static let defaultKeep = 5

    package init(
        file: String, format: ContentFormat = .json, mode: UInt32? = nil, group: String? = nil,
        keep: Int = CacheRules.defaultKeep,
        maxAge: Duration? = nil, key: String? = nil
    ) {
        self.file = file
        rest = Rest(format: format, mode: mode, group: group, keep: keep, maxAge: maxAge, key: key)
    }

    /// Whether snapshots are kept at the same path in the same way. Settings of their age and comparison are ignored.
    func keepsTheSame(as other: CacheRules) -> Bool {
        var own = self
        own.maxAge = other.maxAge
        own.withdraws = other.withdraws
        own.key = other.key
        return own == other
    }
}
