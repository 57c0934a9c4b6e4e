package import FreshetModel

/// A source and the processing of its answer: one node of a pipeline's tree. A pipeline with one request has one stage.
package struct StageDefinition: Hashable, Sendable {
    package var source: SourceDefinition
    /// How its pages are read; nil: the answer is not paginated.
    @Boxed package var pages: PagesDefinition?
    /// How an answer is unpacked; nil: it stays as received.
    @Boxed package var unpack: UnpackRule?
    /// The form in which programs get the answer.
    package var format: ContentFormat
    /// A jq program for the source's data alone; nil leaves the data as it is. `$name` gives the program an outer item.
    package var transform: String?
    /// The fan-out: what is fetched for each item of the data.
    @Boxed package var each: EachDefinition?

    package init(
        _ source: SourceDefinition, unpack: UnpackRule? = nil, pages: PagesDefinition? = nil,
        format: ContentFormat = .json, transform: String? = nil, each: EachDefinition? = nil
    ) {
        self.unpack = unpack
        self.format = format
        self.source = source
        self.pages = pages
        self.transform = transform
        self.each = each
    }

    /// This stage and the stages below it, outermost first.
    package var all: [StageDefinition] {
        var stages = [self]
        guard hasStages else { return stages }
        if case .joined(let sources) = source { stages += sources.flatMap(\.stage.all) }
        return stages + (each?.stage.all ?? [])
    }

    /// Whether there are stages below this one.
    var hasStages: Bool {
        if case .joined = source { return true }
        return each != nil
    }

    /// The pipelines whose copies the stages read, without duplicates.
    package var upstreams: [String] {
        if !hasStages {
            guard case .copy(let pipeline, _) = source else { return [] }
            return [pipeline]
        }
        var known: Set<String> = []
        return all.compactMap {
            if case .copy(let pipeline, _) = $0.source, known.insert(pipeline).inserted { pipeline } else { nil }
        }
    }

    /// The number of reads of other pipelines' copies; each read in a fan-out counts as two.
    var copyReadings: Int {
        let own =
            switch source {
            case .copy: 1
            case .joined(let sources): sources.reduce(0) { $0 + $1.stage.copyReadings }
            case .http, .command, .file: 0
            }
        return own + (each.map { 2 * $0.stage.copyReadings } ?? 0)
    }

    /// Whether the stage makes one request, whose answer may have any format.
    var isSingle: Bool {
        if case .joined = source { false } else { each == nil }
    }
}

/// How a content's bytes become the input of jq programs.
package enum ContentFormat: String, CaseIterable, Hashable, Sendable {
    /// The bytes are JSON texts.
    case json
    /// The bytes are one text in UTF-8; a program gets it as one string.
    case text
}

/// A fan-out: one branch for each item of a list. The results replace the items.
package struct EachDefinition: Hashable, Sendable {
    /// The result of a branch that fails.
    package enum OnError: String, CaseIterable, Hashable, Sendable {
        /// The branch's last value; `null` if there is none.
        case previous
        case null
        /// No result: the list is shorter.
        case omit
        /// The run fails.
        case fail
    }

    /// When the results of the branches are published.
    package enum Publish: String, CaseIterable, Hashable, Sendable {
        /// When all branches have ended.
        case complete
        /// While branches still run. A branch that has not ended yet is shown with its last value.
        case progressive
    }

    /// The name of an item in the stages below: `{topic.id}` in a URL, `$topic` in a program.
    package var name: String
    /// A jq program for an item's key: a branch is identified by its key, wherever its item is in the list.
    package var key: String
    /// The most branches that run at the same time; at least 1.
    package var concurrency: Int
    package var onError: OnError
    /// Only for the outermost fan-out.
    package var publish: Publish
    /// Whether URLs from the items must be at the origin of the list's own URL.
    package var sameOrigin: Bool
    /// The stage that each branch evaluates.
    package var stage: StageDefinition {
        get {
            switch box {
            case .stage(let stage): stage
            }
        }
        set { box = .stage(newValue) }
    }
    private var box: Box

    /// An indirection: a stage may contain a fan-out, which contains a stage.
    private indirect enum Box: Hashable, Sendable {
        case stage(StageDefinition)
    }

    /// The key unless configured: the item itself, which fits texts and numbers.
    package static let defaultKey = "."
    package static let defaultConcurrency = 8
    /// The highest allowed concurrency.
    package static let maximumConcurrency = 64
    /// The most items of a list: each item causes a request.
    package static let maximumItems = 10_000
    /// The longest key, in bytes: it is shown wherever its branch fails.
    package static let maximumKeyBytes = 1024
    /// The deepest nesting of fan-outs: the numbers of their requests multiply.
    package static let maximumDepth = 3

    package init(
        as name: String, key: String = EachDefinition.defaultKey, concurrency: Int = EachDefinition.defaultConcurrency,
        onError: OnError = .previous, publish: Publish = .complete, sameOrigin: Bool = true, _ stage: StageDefinition
    ) {
        self.publish = publish
        self.sameOrigin = sameOrigin
        self.name = name
        self.key = key
        self.concurrency = concurrency
        self.onError = onError
        box = .stage(stage)
    }

    /// The placeholders in the branches' URLs and arguments that an item fills, without duplicates.
    package var placeholders: [URLTemplate.Placeholder] {
        var known: Set<URLTemplate.Placeholder> = []
        return stage.all.flatMap(\.source.placeholders).filter { $0.name == name && known.insert($0).inserted }
    }
}
