"""Words of everybody's trade, and of everybody: a page about one would be led to from everywhere, and say nothing."""

import re

COMMON_WORDS = frozenset(
    re.findall(
        r"\S+",
        """
        a abc about abstract accepted account accounts action actions active add added adds admin advanced after again
        against agent agents algorithm all almost already also always am amend an and another answer answers any api apis
        app application applications approach architecture are area areas arg args argument arguments array arrays artifact
        artifacts as ascii ask asks assert asserts asset assets async at atomic attempt attempts attribute attributes
        attribution attributions audit auth auto automatic await backup backups bad bar base base64 basic batch batches baz
        be because been before begin begins being bench benchmark best better between beyond big bin binary bit bits blame
        block blocks body bool boolean bootstrap bot both branch branches buffer buffers bug bugs build builds built bulk
        busy but button by byte bytes cache cached caches call callback callbacks called calls came camelcase can case cases
        cause causes cd cell change changed changelog changes channel channels char character characters chars check checked
        checkout checkpoint checkpoints checks checksum child children chunk chunks ci class classes clean cleanup clear
        clears cli client clients clone cloned close closed closes closure cmd code codebase codes color colors column
        columns come comes command commands comment comments commit commits committed common compile compiled compiler
        compiles complex config configs configuration console constant constants consumer content contents context
        controller conversation conversations core could count counter counts crash create created creates credential
        credentials cron css csv ctx current cursor custom cx daemon data date dates datum day days debug debugger decoding
        decrypt default defaults delay delete deleted deletes demo dependencies dependency deploy deployed deploys
        description descriptions design destination detail details detect detection detects dev develop development dialog
        dict dictionary did diff diffs digest dir directories directory dirs dirty disabled discover discovery disk display
        dns do doc docker-compose dockerfile docs documentation does doing domain done double downstream draft drafts drain
        dry during dynamic each eager early edge edges edit edited edits element elements else empty enabled encoding
        encrypt end ended endpoint endpoints ends enough entries entry enum enums env environment environments err error
        errors even event events ever every example examples exception exceptions explain explains export exports extension
        extensions external fail failed failover fails failure failures false fast fatal feature features fetch fetched
        fetches few field fields file filename files filter filters final find finds first fix fixed fixes fixme fixture
        fixtures flag flags float flush folder folders foo for force fork forks form format formats formatter forms found
        fresh from full function functions gave gc generic get gets give given gives global go goal goals goes going gone
        good got grammar graph graphs group groups gui guid had half handle handler handlers handles has hash hashes have
        having he head header headers heap hello help helper helpers helps her here hex hidden high higher him his history
        hook hooks host hosts hour how html http https i icon id idea identifier idle ids if image images import imports in
        inactive inbox include includes index indexes indices info information init initial input inputs install installed
        installs instance instances instead int integer integers interface interfaces internal interval into ip ipsum is
        issue issues it item items its job jobs json just kebab-case keep keeps kept key keys kind kinds know known knows
        label labels language languages large larger last late later latest layer layers layout lazy leaf least length less
        let lets level levels lib libraries library license life limit limits line lines link links lint linter list
        listener lists load loaded loads local locale lock locks log logged logging logic login logout logs long longer look
        looks lookup lookups loop loops loose lorem low lower made main major make makefile makes man manual many map maps
        master match matches max maximum may maybe md5 me measure member members memory menu merge merged merges message
        messages meta metadata method methods metric metrics might migrate migrates migration migrations min minimum minor
        minute mirror mirrors misc mock mocks mode model models modes module modules monitor monitors month more most mr msg
        multiple must muted mutex my name names nan need needed needs network never new newer next nil no node nodes none
        normal not note notes now null num number numbers object objects of off often ok old older on once one only onto
        open opened opens option optional options or order orders origin original other others our out outbox output outputs
        over override overrides owner owners package packages page pages panic param parameter parameters params parent
        parents parse parser parses part partial partition parts pascalcase pass passed passes password patch patches path
        paths pattern patterns payload pending people perhaps permission permissions person phase phases pipe pipeline
        pipelines place places plain plan plans plugin plugins point pointer pointers policies policy poll polling pool port
        ports pr preset previous primary print printer prints prior private problem problems procedure process processes
        prod producer production profile profiles program programs progress prompt prompts properties property proposal
        proposals proposed provider providers prs prune prunes public publisher pull pulled pulls push pushed pushes put
        puts qa queries query question questions queue queues quiet quite qux race races ran random rate rather ratio raw
        read reader readme reads ready reason reasons rebase receive received receives recent record records ref reference
        references refresh refs regex rejected release released releases reload remote remotes remove removed removes render
        renders replay replicate replicates replication replies reply repo report reports repos repositories repository req
        request requests required res reset resolve resolver resolves response responses restart restore restores result
        results retries retry return returns revert reverts review reviews rewind role roles room rooms root route router
        routes row rows rule rules run running runs safe said same sample samples save saved saves saw say says scan scans
        schedule scheduler scope scopes score scores screen script scripts sdk search searches second secondary seconds
        secret secrets see seed seen sees segment segments semantics send sends sent server servers service services session
        sessions set sets setting settings setup several sha shall shared she shell short shorter should show shown shows
        shutdown sibling side sides signal signals signature signatures silent simple single size sizes skip skipped skips
        sleep slice slices slot slow small snake_case snapshot snapshots so socket sockets some sometimes soon sort sorts
        source sources spec special specific specs sql squash src ssh ssl stack stacks stage stages staging stale standard
        start started starts stash state states static status stderr stdin stdout step steps still stop stopped stops store
        stored stores str strategies strategy stream streams strict string strings struct structs stub stubs stuff style
        styles subscriber subscription success such summarise summarize summary superseded sync synchronous syntax table
        tables tag tagged tags take taken takes target targets task tasks tcp team teams teardown tell tells temp template
        templates temporary terminal test tested testing tests text texts than that the their them theme then there these
        they thing things think third this those thread threads three threshold through time timeline timeout timer times
        timestamp title titles tls tmp to today todo token tokens told toml tomorrow too took tool tooling tools topic
        topics total toward towards trace traces track tracks trait traits transcript transcripts transfer transfers tree
        trees tried tries true trunk try tuple tuples twice two type types udp ui undefined under unicode unit units unless
        unsafe until up update updated updates upon upstream uri url urls us use used user users uses using utf utf-8 utf8
        util utilities utility utils uuid ux validate validated value values variable variables various vendor verbose
        verified verifies verify version versions very via view views visible void wait waits want wants warning warnings
        was watch watcher watches way ways we week weight weights went were what when where which while who whole whom whose
        why will window wip with within without woman word words work worked worker workers works worktree world worse worst
        would write writer writes written wrote xml xyz yaml year yes yesterday you young your
        """,
    )
)
