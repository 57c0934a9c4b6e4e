/// The description of `io.freshet.Control`, the same text as `varlink/io.freshet.Control.varlink`.
///
/// It is embedded because an installed program should need no resource beside it; a test holds the two together.
package enum ControlInterface {
    package static let name = "io.freshet.Control"

    package static let description = """
        # Ask freshetd what it does, and steer it.
        #
        # Instants are microseconds since 1970-01-01 00:00 UTC by the wall clock; durations, whose names end in USec, are
        # microseconds; sizes are bytes. A field that is null or absent says: there is none. Fields may be added to types and
        # replies; a client ignores those that it does not know.
        #
        # Whoever may connect may read. Refresh, LoadMore, SetParameters, Hold, Release, Rollback, Accept, Pin, Unpin,
        # FireSignal, SetLogLevel, Examine, ListUnowned and Prune are for root, the group freshet, and the daemon's own user if
        # that is an ordinary user; Reload is for these and for the daemon's own user always. All others get
        # org.varlink.service.PermissionDenied.
        interface io.freshet.Control

        # What a pipeline is doing; held: nothing of it runs until Release. What it offers to readers is another matter: see
        # Pipeline.generation.
        type State (idle, waiting, loading, loaded, failed, held)

        # What a waiting pipeline waits for: that the network is reachable, that a storm of signals calms down, the time of
        # the next attempt, that its budget of requests has room again, its turn among other pipelines, memory for the
        # programs that work on its answer, or that the machine, which is about to sleep, is awake again.
        type WaitingFor (network, quiet, backoff, budget, slot, memory, sleep, filesystem)

        # How old the offered copy is: stale when its next planned check or its origin's word for how long it is fresh has
        # passed, or when it is behind (see Generation); expired when it is past its maximum age, withdrawn or not, or past the
        # time at which its content expires by what the content itself states.
        type Freshness (fresh, stale, expired)

        # How a run ended. A failed, superseded or cancelled run leaves the copy as it was.
        type Outcome (changed, unchanged, failed, superseded, cancelled)

        # A committed copy. The file at path is readable with its own permissions; its content does not cross this socket.
        # Truncated is true if the source had more pages than its limit allows; behind, if the source was found to have other
        # content, which does not replace this one, since it was rolled back to or is pinned. PinnedSince is null if it is not.
        # Of several files, directory is the link to the directory that has them, and path has them all as one JSON object.
        type Generation (
          number: int,
          size: int,
          digest: string,
          committedAt: int,
          path: string,
          mediaType: ?string,
          truncated: ?bool,
          behind: ?bool,
          pinnedSince: ?int,
          directory: ?string,
          comment: ?string
        )

        # A generation that readers do not find since it is past its maximum age; its content is kept. Since is when it was withdrawn.
        type WithdrawnCopy (
          number: int,
          size: int,
          digest: string,
          committedAt: int,
          since: int
        )

        # A generation that there is, or was; kept, if its content is still there. The causes of its run, and how long that
        # took, are null if they are not known. Withdrawn is true of the one that would be current if it were not too old.
        type PastGeneration (
          number: int,
          committedAt: int,
          size: int,
          digest: string,
          causes: ?string,
          durationUSec: ?int,
          truncated: ?bool,
          kept: bool,
          current: bool,
          withdrawn: ?bool
        )

        # What a check refused last: content that is kept aside for a week, for a look, and what the check said of it.
        type Candidate (
          digest: string,
          size: int,
          refusedAt: int,
          reason: string
        )

        # One signal's share in a run: how often it fired, when first and last, and what for in words. Number is that of the
        # last firing, as events have it; null for what is a pipeline's own, such as its timer.
        type Cause (
          signal: string,
          number: ?int,
          count: int,
          first: int,
          last: int,
          detail: ?string
        )

        # One execution of a pipeline. Without an outcome it is under way.
        type Run (
          number: int,
          started: int,
          causes: []Cause,
          durationUSec: ?int,
          outcome: ?Outcome,
          generation: ?int,
          failure: ?string
        )

        # When a pipeline runs next by itself, and why.
        type NextRun (
          at: int,
          reason: string
        )

        # Why a pipeline fails, since when, and how often it was tried.
        type Failure (
          message: string,
          since: int,
          attempts: int
        )

        # A budget of requests, and what was spent of it in the last period.
        type Budget (
          limit: int,
          periodUSec: int,
          used: int
        )

        # A parameter of a pipeline: what it is now, and what it is if nobody sets it. Both are null if its name says that
        # they are secrets. Choices or the pattern say what it may be; quiet is how long nothing is changed before a change
        # is acted on.
        type Parameter (
          name: string,
          value: ?string,
          default: ?string,
          isSet: bool,
          choices: ?[]string,
          pattern: ?string,
          quietUSec: int
        )

        # A branch that fails: the keys that lead to it, why, since when, and in how many runs in a row.
        type BranchFailure (
          path: []string,
          message: string,
          since: int,
          attempts: int
        )

        # The branches of a pipeline, if some of them fail: how many there are, how many of them fail, and the first that do.
        type Branches (
          total: int,
          failed: int,
          failing: []BranchFailure
        )

        # A place where further pages can be loaded: the keys that lead to its branch, none for the pipeline's own pages, and
        # how many pages are in the copy.
        type MorePlace (
          path: []string,
          pages: int
        )

        # Where further pages of a pipeline can be loaded: at how many places, and the first of them.
        type MorePages (
          total: int,
          places: []MorePlace
        )

        # A hook that is owed: it has not succeeded yet for the generation that readers see. Attempts for this generation have
        # failed so often; since is when the first one failed after it last succeeded, null if none has. Next is null while it
        # runs or waits for its turn.
        type PendingHook (
          hook: string,
          generation: int,
          running: bool,
          attempts: int,
          since: ?int,
          error: ?string,
          next: ?int
        )

        # A pipeline. Source has no secrets: user information and query are left out. Path says how the network leads to
        # the source, or why it does not; it is null for a source that needs no network. WaitingDetail
        # says more of what it waits for, such as whose limit of requests at once.
        # LoadedBytes of totalBytes are there of the run under way; totalBytes is null while nobody knows it.
        # OriginExpires is when the data stops being fresh by its origin's word, expires when the copy is past its maximum age,
        # contentExpires when its content expires by what the content itself states (check.valid-until, check.made-within).
        # Generation is null while the copy is withdrawn. HeldSince is there as soon as it is held, also while a run ends.
        # LastRun may be from before the daemon started: then its causes have no details, and are as old as the run.
        type Pipeline (
          name: string,
          description: ?string,
          source: string,
          state: State,
          waitingFor: ?WaitingFor,
          waitingUntil: ?int,
          waitingDetail: ?string,
          loadedBytes: ?int,
          totalBytes: ?int,
          loadedPages: ?int,
          endedBranches: ?int,
          knownBranches: ?int,
          freshness: ?Freshness,
          generation: ?Generation,
          lastCheck: ?int,
          originExpires: ?int,
          expires: ?int,
          contentExpires: ?int,
          lastRun: ?Run,
          lastCauses: []Cause,
          nextRun: ?NextRun,
          failure: ?Failure,
          candidate: ?Candidate,
          budget: ?Budget,
          branches: ?Branches,
          more: ?MorePages,
          needsNetwork: bool,
          path: ?string,
          parameters: ?[]Parameter,
          hooks: ?[]PendingHook,
          withdrawn: ?WithdrawnCopy,
          heldSince: ?int
        )

        # A pipeline in short, as a line of a list has it: what it does, and the copy that readers find, by its number, its size
        # and what is special about it. Withdrawn is a copy that readers would find if it were not too old. Causes are the signals
        # of the last run. HookFails says that a hook is owed whose last attempt failed.
        type Summary (
          name: string,
          state: State,
          waitingFor: ?WaitingFor,
          freshness: ?Freshness,
          generation: ?int,
          size: ?int,
          truncated: ?bool,
          behind: ?bool,
          pinned: ?bool,
          withdrawn: ?int,
          lastCheck: ?int,
          nextRun: ?int,
          causes: []string,
          hookFails: ?bool
        )

        # How a pipeline is wired, by its configuration: where its data comes from, the pipelines whose copies it reads, the
        # sources of signals that it listens to, by their names in Signals, what readers find, and what is run after a change.
        # The durations are null where there is none. WhenRunning is what a signal does while a run is under way: queue, for one
        # more run after it, or restart. A pipeline whose configuration has faults has none of this but its name, and faulty.
        type Description (
          name: string,
          description: ?string,
          source: string,
          inputs: []string,
          signals: []string,
          files: []string,
          hooks: []string,
          everyUSec: ?int,
          quietUSec: ?int,
          atMostUSec: ?int,
          freshForUSec: ?int,
          minIntervalUSec: ?int,
          deadlineUSec: ?int,
          maxAgeUSec: ?int,
          whenRunning: ?string,
          needsNetwork: bool,
          faulty: ?bool
        )

        # What a pipeline has done since the daemon began: its runs by outcome and how long all of them took, the requests that
        # they made, and the bytes of the answers.
        type Counters (
          name: string,
          changed: int,
          unchanged: int,
          failed: int,
          superseded: int,
          cancelled: int,
          durationUSec: int,
          requests: int,
          receivedBytes: int
        )

        # How many pipelines there are, by state.
        type Counts (
          total: int,
          idle: int,
          waiting: int,
          loading: int,
          loaded: int,
          failed: int,
          held: int
        )

        # A reload that was refused: the configuration before is in force. How many faults there were, and the first of them, without
        # its excerpt.
        type RefusedReload (
          at: int,
          faults: int,
          first: Diagnostic
        )

        # Jobs of one name that used the daemon's event loop for 20 ms of processor time or more: how many, and the longest.
        type SlowJob (
          job: string,
          count: int,
          longestUSec: int
        )

        # The daemon. Network says in words how it sees the way to elsewhere. ConfigurationSince is when the configuration in force was
        # read; refusedReload is the last reload, if it was refused.
        type Daemon (
          version: string,
          pid: int,
          since: int,
          network: string,
          networkReachable: bool,
          pipelines: Counts,
          failingHooks: ?int,
          cacheBytes: ?int,
          cacheLimit: ?int,
          memoryBytes: ?int,
          memoryLimit: ?int,
          configurationSince: ?int,
          refusedReload: ?RefusedReload,
          slowJobs: ?[]SlowJob
        )

        # A source of signals: the fact behind it at present, how often it fired since the daemon follows it, and the last time.
        # Ignored is how often something was heard that did not matter and fired nothing; null for a source that has no such
        # thing. Where the machine lacks what it needs, unavailable says what. The name begins with that of the signal, such as
        # network, and is all of it unless the signal has several sources.
        type Signal (
          name: string,
          fact: string,
          unavailable: ?string,
          fired: int,
          ignored: ?int,
          lastFired: ?int,
          lastDetail: ?string
        )

        # What came of a request to refresh one pipeline. Without wait it has a name only, or tryLater. With wait it has the
        # run's outcome; generation, size and behind are those of the offered copy, if there is one.
        type Refreshed (
          name: string,
          outcome: ?Outcome,
          run: ?int,
          generation: ?int,
          size: ?int,
          durationUSec: ?int,
          failure: ?string,
          tryLater: ?TryLaterHint,
          behind: ?bool
        )

        # What came of a request for a further page at a place. Without wait it has a name and a path only. Pages is how many
        # are in the copy now; hasMore, whether there are more.
        type LoadedMore (
          name: string,
          path: []string,
          outcome: ?Outcome,
          run: ?int,
          generation: ?int,
          size: ?int,
          durationUSec: ?int,
          failure: ?string,
          pages: ?int,
          hasMore: ?bool
        )

        # A run that was requested and waits, and what for in a sentence.
        type WaitingHint (
          name: string,
          reason: string
        )

        # Nothing was started, as the origin or a budget asks for patience. Until may be unknown.
        type TryLaterHint (
          reason: string,
          until: ?int
        )

        # A parameter, and the value that it is to have; null: its default.
        type Setting (
          parameter: string,
          value: ?string
        )

        # A value that is not taken, and why.
        type Refusal (
          parameter: string,
          reason: string
        )

        type Severity (fault, warning)

        # What is wrong with the configuration, and where. Lines and columns count from 1. The excerpt is the line, or the
        # part of a long one around the fault; caret says how many of its Unicode characters stand before the fault.
        type Diagnostic (
          severity: Severity,
          file: string,
          line: ?int,
          column: ?int,
          message: string,
          excerpt: ?string,
          caret: ?int
        )

        # What the daemon did with the configuration's pipelines when it read it again.
        type ReloadSummary (
          added: []string,
          changed: []string,
          removed: []string,
          unchanged: int
        )

        # How much the daemon logs: what is of this level and of those to the right.
        type LogLevel (trace, debug, info, notice, warning, error, critical)

        type EventKind (signal, fact, runStarted, runEnded, state, reloaded, skipped)

        # Something happened. By kind:
        #   signal      signal, number (its source's how-manieth firing) and detail; source, its name in Signals, where the
        #               signal has several; pipeline if one alone listens to it
        #   fact        signal and source, as above; the fact behind it is now detail. By FollowSignals alone
        #   runStarted  pipeline and run
        #   runEnded    pipeline, run and, if one was committed, generation
        #   state       pipeline and state, with waitingFor and waitingUntil; detail if there is more to say of the wait,
        #               or that the copy is past its maximum age, or its content expired, or is so no more, or that it is
        #               withdrawn for its age, or back
        #   reloaded    the configuration was read again: detail says what changed
        #   skipped     number of events that are missing here, as this client read too slowly
        type Event (
          at: int,
          kind: EventKind,
          pipeline: ?string,
          signal: ?string,
          source: ?string,
          number: ?int,
          detail: ?string,
          run: ?Run,
          generation: ?Generation,
          state: ?State,
          waitingFor: ?WaitingFor,
          waitingUntil: ?int
        )

        # What may be the matter with the cache:
        #   indexDamaged    the index does not hold together
        #   copyMissing     there is no file where readers look for the current generation
        #   copyDamaged     what readers find there is not the current generation; without generation, there is none
        #   copyApart       the copy has its content, and is another file than that of its generation
        #   contentDamaged  the file of a generation has other content, or is no file
        #   contentMissing  the file of a generation is gone
        #   contentUnknown  a file with the name of a generation that the index does not know
        #   refusedDamaged  what a check refused, and is kept aside, has other content, or is gone
        #   pinLost         the generation is gone at which the pipeline is pinned
        #   unfinished      what a commit has left that did not come to its end
        #   stray           what the cache did not put there
        #   setDamaged      of several files: the link to their directory, or what is in it, is not that of the current generation
        type FindingKind (
          indexDamaged, copyMissing, copyDamaged, copyApart, contentDamaged, contentMissing, contentUnknown, refusedDamaged, pinLost,
          unfinished, stray, setDamaged
        )

        # Something of the cache that is not as it was committed; without a pipeline, it is none's. Detail says more, or why it was
        # not repaired.
        type Finding (
          kind: FindingKind,
          pipeline: ?string,
          generation: ?int,
          path: string,
          detail: ?string,
          repaired: bool
        )

        # What the cache still has of a pipeline that is not configured any more: its file below current/, how many generations are
        # kept, the bytes of all content, and when the newest was committed.
        type Unowned (
          name: string,
          file: ?string,
          generations: int,
          bytes: int,
          committedAt: ?int
        )

        # A pipeline of which something is left, and why. It is found again, and goes with the next Prune.
        type Unpruned (
          name: string,
          reason: string
        )

        # The daemon itself.
        method GetDaemon() -> (daemon: Daemon)

        # The pipelines of these names, or all, in the order of their names. A name may be a pattern, as in a shell (fnmatch(3)):
        # then it stands for all that it fits, which may be none. States leaves out those in other states, after those up to that
        # name, and limit those beyond so many. Called with more, the answer comes in several replies, each with some of them.
        method List(names: ?[]string, states: ?[]State, after: ?string, limit: ?int) -> (pipelines: []Pipeline)

        # The same in short, which costs a fraction: for lists, prompts and monitoring. To be called with more.
        method Summarize(names: ?[]string, states: ?[]State, after: ?string, limit: ?int) -> (summaries: []Summary)

        # How pipelines are wired: those of these names, which may be patterns, or all. To be called with more.
        method Describe(names: ?[]string) -> (pipelines: []Description)

        # What pipelines have done so far: those of these names, which may be patterns, or all. To be called with more.
        method Metrics(names: ?[]string) -> (pipelines: []Counters)

        # Runs pipelines now: those named, or all of them. At least one name, or all, must be given. Without wait, returns
        # when the runs are requested; with wait, when the first run of each that started after the request has ended, or
        # the one that superseded it. Called with more, each reply has the results that have come in since the last.
        # The same call hears of a run that waits for the network to be proven, in a reply without results. Force passes
        # the origin's Retry-After and budgets. An unconditional run sends no validators, so that the origin delivers all that it
        # has. If exactly one pipeline is named, its tryLater is the error TryLater.
        method Refresh(names: ?[]string, all: ?bool, wait: ?bool, force: ?bool, unconditional: ?bool) -> (results: []Refreshed, waiting: ?[]WaitingHint)

        # Loads one further page of a set that is loaded on demand (pages.load), and commits the copy with it. Path has the keys
        # that lead to its branch; without it, the only place of the pipeline where there are more. It is no check: when the next
        # one comes stays as it was, and one that begins meanwhile ends it. Requests for one place at the same time are one.
        # Without wait, returns when the page is requested; with wait, when its run has ended.
        method LoadMore(name: string, path: ?[]string, wait: ?bool) -> (result: LoadedMore)

        # Changes parameters of a pipeline: all settings together, or, if a value is not taken, none. With othersToDefault
        # those that are not named go back to their defaults. Returns which have another value now, and what all are, when
        # it is remembered; a run with other values than the last one starts when it has been quiet, and ends one that is
        # under way.
        method SetParameters(name: string, settings: []Setting, othersToDefault: ?bool) -> (changed: []string, parameters: []Parameter)

        # Where the current content of a pipeline is. A client opens the file with its own rights.
        method Get(name: string) -> (generation: Generation)

        # The newest generations of a pipeline, newest first: at most limit of them, or all that are known of. Key says where
        # an item of its content has its key, if that is configured.
        method History(name: string, limit: ?int) -> (generations: []PastGeneration, key: ?string)

        # The content of a generation that is kept, in pieces, each in Base64. To be called with more. It is for whoever may read
        # the pipeline's current copy, by the modes of that file and of the directories above it, and by the mode that this
        # generation was written with: all others get NotReadable.
        method ReadGeneration(name: string, number: int) -> (data: string)

        # The content of a pipeline's candidate, which a check refused, as ReadGeneration has a generation's.
        method ReadCandidate(name: string) -> (data: string)

        # Makes a pipeline's candidate its copy, as a new generation, whatever the check says of this content, now and when it
        # comes again. With a digest, or how one begins, only if that is the candidate's. Returns what readers see from now on,
        # and what they saw before.
        method Accept(name: string, digest: ?string) -> (generation: Generation, replaced: ?int)

        # Makes a generation that is kept the current one again, under its own number; without a number, the newest one before
        # the current one. Returns what readers see from now on, and what they saw before. What the source had when it was last
        # asked does not come back by itself; other content does, unless the pipeline is pinned.
        method Rollback(name: string, number: ?int) -> (generation: Generation, replaced: ?int)

        # Keeps the copy of a pipeline from being replaced, and from being removed, until Unpin. The source is asked as before.
        # Changed is false if it was pinned already.
        method Pin(name: string) -> (generation: Generation, changed: bool)

        # Lets what the source has become the copy again, at the next check. Changed is false if it was not pinned; generation is
        # null if nothing is offered.
        method Unpin(name: string) -> (generation: ?Generation, changed: bool)

        # Has nothing of a pipeline run until Release, whatever fires, across restarts. A run under way ends by itself; what is heard
        # meanwhile is remembered, and its copy stays as it is. Changed is false if it was held already.
        method Hold(name: string) -> (name: string, changed: bool)

        # Lets a held pipeline run again; what was heard meanwhile is acted on. Changed is false if it was not held.
        method Release(name: string) -> (name: string, changed: bool)

        # Examines the cache beside all else that the daemon does: reads all content and compares it with its digests, the index
        # with the files, and the copies with their generations. With repair, removes what is damaged, so that the next request is
        # unconditional, puts back what can be, and moves what is not the cache's own to the directory strays. To be called with
        # more: each reply has what was found since the last, and how many pipelines, generations and bytes were read for it.
        # Unnamed is how many further findings there are of a pipeline that has too many.
        method Examine(repair: ?bool) -> (findings: []Finding, pipelines: int, generations: int, bytes: int, unnamed: int)

        # What the cache has of pipelines that are not configured, in force or in files. To be called with more.
        method ListUnowned() -> (pipelines: []Unowned)

        # Removes all that there is of these pipelines: copies, generations, and what is remembered. Left out are those that are
        # configured, also with faults, and those of which there is nothing. Returns what was removed,
        # and those of which something is left, which keep nobody else from being removed.
        method Prune(names: []string) -> (pipelines: []Unowned, failed: ?[]Unpruned)

        # What happens from now on, to the pipelines of these names or to all; signals are always reported. To be called
        # with more. The first reply comes at once and has no event: from then on nothing is missed, or the loss is said.
        method Monitor(names: ?[]string) -> (event: ?Event)

        # What has happened, as far as the daemon remembers it, oldest first, since an instant or from the beginning: signals,
        # changes of facts, runs, and states that are not told by runs, of the pipelines of these names, which may be patterns,
        # or of all. After completeSince nothing is missing; older things are in the journal. The generation of a runEnded has to be
        # asked for by its number in the run. To be called with more.
        method RecentEvents(names: ?[]string, since: ?int) -> (events: []Event, completeSince: int)

        # The sources of signals and their present facts.
        method Signals() -> (signals: []Signal)

        # Occurrences of signals and changes of the facts behind them from now on: of the sources of these names, of all sources
        # of a signal of such a name, or of all. To be called with more; the first reply is as that of Monitor.
        method FollowSignals(names: ?[]string) -> (event: ?Event)

        # Fires a source of signals by hand, for tests of one's own configuration: all that listens to it hears it, and who
        # raised it is the detail. Before network and resume new connections are begun with, as with the real thing; reload is
        # the signal alone, and no configuration is read. The fact stays. Returns how many pipelines listen to it.
        method FireSignal(name: string) -> (pipelines: int)

        # Reads the configuration again and applies what has changed; then, unless configurationOnly, the signal reload
        # fires. The diagnostics of a reload that succeeds are warnings.
        method Reload(configurationOnly: ?bool) -> (summary: ReloadSummary, diagnostics: []Diagnostic)

        # How much the daemon logs at present.
        method GetLogLevel() -> (level: LogLevel)

        # Logs more or less from now on, until the daemon ends.
        method SetLogLevel(level: LogLevel) -> ()

        # There is no pipeline of this name. The suggestion is one with a similar name; the file is one that would make the
        # pipeline, and is not in force: it is newer than the last reload, or that was refused.
        error NoSuchPipeline (name: string, suggestion: ?string, file: ?string)

        # There is no source of signals of this name. The suggestion is one with a similar name.
        error NoSuchSignal (name: string, suggestion: ?string)

        # This signal is not fired by hand, but by Refresh: it asks for runs of single pipelines.
        error CannotFire (name: string)

        # The pipeline does not run: its configuration has faults.
        error PipelineFaulty (name: string)

        # The pipeline has no copy yet.
        error NoGeneration (name: string)

        # The copy is withdrawn, as it is past its maximum age: this generation, since then. ReadGeneration has its content.
        error Withdrawn (name: string, number: int, since: int)

        # The content of this generation is not kept, if it was ever there; without a number, none before the current one is.
        # Kept says which are.
        error NoSuchGeneration (name: string, number: ?int, kept: []int)

        # The file of this generation does not have its content any more.
        error DamagedGeneration (name: string, number: int)

        # The modes of files do not let the caller's user read this pipeline's content: of this generation, or of its
        # candidate.
        error NotReadable (name: string, number: ?int)

        # Nothing that a check refused is kept aside of this pipeline.
        error NoCandidate (name: string)

        # The candidate is not the one that was meant, but has this digest.
        error OtherCandidate (name: string, digest: string)

        # The copy is pinned at this generation.
        error Pinned (name: string, number: int)

        # Nothing was set, as these values are not taken.
        error ParametersRefused (name: string, refusals: []Refusal)

        # The configuration has faults; the one before is still in force.
        error ConfigurationRefused (diagnostics: []Diagnostic)

        # All pages of this place are in the copy.
        error NothingMore (name: string, path: []string)

        # No pages are loaded on demand at this place. The suggestion is a similar one, its keys with spaces between them.
        error NoSuchBranch (name: string, path: []string, suggestion: ?string)

        # No place was named, and there are several.
        error SeveralBranches (name: string, more: MorePages)

        # The pipeline has no pages that go on; the reason is the rest of a sentence about it.
        error CannotLoadMore (name: string, reason: string)

        # Nothing was started: the origin or a budget asks for patience.
        error TryLater (reason: string, until: ?int)

        # It was tried and did not succeed, such as for want of room: the reason is a sentence. What readers see is whole, and Get
        # and List tell what it is. Without a name it is about the cache as a whole.
        error Failed (name: ?string, reason: string)

        # The daemon cannot do this at the moment, such as while it reloads or stops.
        error Busy (reason: string)

        """
}
