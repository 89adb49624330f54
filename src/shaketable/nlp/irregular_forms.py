"""Irregular forms of English words, and parts of speech of common words that no ending shows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shaketable.nlp.words import word_set

IRREGULAR_VERB_FORMS = """
abide abode abode | arise arose arisen | awake awoke awoken | bear bore borne | beat beat beaten | become became become
befall befell befallen | begin began begun | behold beheld beheld | bend bent bent | bet bet bet | bid bid bid
bind bound bound | bite bit bitten | bleed bled bled | blow blew blown | break broke broken | breed bred bred
bring brought brought | broadcast broadcast broadcast | build built built | burn burnt burnt | burst burst burst
buy bought bought | cast cast cast | catch caught caught | choose chose chosen | cling clung clung | come came come
cost cost cost | creep crept crept | cut cut cut | deal dealt dealt | dig dug dug | do did done | draw drew drawn
dream dreamt dreamt | drink drank drunk | drive drove driven | dwell dwelt dwelt | eat ate eaten | fall fell fallen
feed fed fed | feel felt felt | fight fought fought | find found found | flee fled fled | fling flung flung
fly flew flown | forbid forbade forbidden | forecast forecast forecast | foresee foresaw foreseen
forget forgot forgotten | forgive forgave forgiven | forgo forwent forgone | freeze froze frozen | get got gotten
give gave given | go went gone | grind ground ground | grow grew grown | hang hung hung | have had had | hear heard
heard
hide hid hidden | hit hit hit | hold held held | hurt hurt hurt | keep kept kept | kneel knelt knelt | know knew known
lay laid laid | lead led led | lean leant leant | leap leapt leapt | learn learnt learnt | leave left left
lend lent lent | let let let | lie lay lain | light lit lit | lose lost lost | make made made | mean meant meant
meet met met | mislead misled misled | mistake mistook mistaken | outdo outdid outdone | outgrow outgrew outgrown
overcome overcame overcome | override overrode overridden | oversee oversaw overseen | overtake overtook overtaken
overthrow overthrew overthrown | partake partook partaken | pay paid paid | put put put | quit quit quit | read read
read
rebuild rebuilt rebuilt | redo redid redone | repay repaid repaid | reset reset reset | rewrite rewrote rewritten
rid rid rid | ride rode ridden | ring rang rung | rise rose risen | run ran run | saw sawed sawn | say said said
see saw seen | seek sought sought | sell sold sold | send sent sent | set set set | sew sewed sewn | shake shook shaken
shed shed shed | shine shone shone | shoot shot shot | show showed shown | shrink shrank shrunk | shut shut shut
sing sang sung | sink sank sunk | sit sat sat | sleep slept slept | slide slid slid | sling slung slung | slit slit slit
smell smelt smelt | sow sowed sown | speak spoke spoken | speed sped sped | spell spelt spelt | spend spent spent
spill spilt spilt | spin spun spun | spit spat spat | split split split | spoil spoilt spoilt | spread spread spread
spring sprang sprung | stand stood stood | steal stole stolen | stick stuck stuck | sting stung stung
stink stank stunk | strike struck stricken | strive strove striven | swear swore sworn | sweep swept swept
swell swelled swollen | swim swam swum | swing swung swung | take took taken | teach taught taught | tear tore torn
tell told told | think thought thought | throw threw thrown | thrust thrust thrust | tread trod trodden
undergo underwent undergone | understand understood understood | undertake undertook undertaken | undo undid undone
uphold upheld upheld | upset upset upset | wake woke woken | wear wore worn | weave wove woven | weep wept wept
win won won | wind wound wound | withdraw withdrew withdrawn | withhold withheld withheld
withstand withstood withstood | wring wrung wrung | write wrote written
"""
"""Base, past, participle. Rules cover verbs that also have a regular form ("burned")."""

IRREGULAR_PLURALS = """
men man | women woman | children child | people people | feet foot | teeth tooth | geese goose | mice mouse | lice louse
oxen ox | knives knife | wives wife | lives life | leaves leaf | loaves loaf | halves half | calves calf
thieves thief | wolves wolf | shelves shelf | selves self | elves elf | scarves scarf | hooves hoof | crises crisis
theses thesis | analyses analysis | bases basis | hypotheses hypothesis | oases oasis | diagnoses diagnosis
synapses synapse | parentheses parenthesis | axes axis | criteria criterion | phenomena phenomenon
bacteria bacterium | curricula curriculum | media medium | stimuli stimulus | fungi fungus | nuclei nucleus
cacti cactus | alumni alumnus | radii radius | indices index | appendices appendix | matrices matrix
vertices vertex | vortices vortex | larvae larva | pupae pupa | algae alga | vertebrae vertebra | formulae formula
antennae antenna | data datum | strata stratum | errata erratum | spectra spectrum | ova ovum | genera genus
corpora corpus | viscera viscus | potatoes potato | tomatoes tomato | heroes hero | echoes echo | vetoes veto
volcanoes volcano | mosquitoes mosquito | torpedoes torpedo | cargoes cargo | mangoes mango | mottoes motto
toes toe | shoes shoe | canoes canoe | dominoes domino | buses bus | gases gas | viruses virus | lenses lens
quizzes quiz | movies movie | cookies cookie | ties tie | pies pie | lies lie | calories calorie | zombies zombie
selfies selfie | rookies rookie | birdies birdie | genies genie | prairies prairie | eyes eye | axles axle
caches cache | aches ache | headaches headache | avalanches avalanche | moustaches moustache | niches niche
clothes clothes | species species | series series | means means | news news | headquarters headquarters
""" + " ".join(
    f"| {word} {word}"
    for word in """
    physics mathematics economics politics athletics gymnastics genetics electronics ethics linguistics
    mechanics tectonics diabetes measles mumps rabies herpes sheep deer aircraft spacecraft offspring
    trousers jeans scissors glasses thanks congratulations lens bus gas virus pancreas atlas canvas alias bias
    christmas texas kansas
    """.split()
)
"""Plural and singular of nouns with an irregular plural, or that only look like a plural."""

IRREGULAR_ADJECTIVE_DEGREES = """
better good | best good | worse bad | worst bad | furthest far | farther far | farthest far | elder old | eldest old
"""

IRREGULAR_ADVERB_DEGREES = """
better well | best well | worse badly | worst badly | furthest far | farther far | farthest far
"""


def _parse_pairs(text: str) -> dict[str, str]:
    words = text.replace("|", " ").split()
    return dict(zip(words[::2], words[1::2], strict=True))


@cache
def build_irregular_plurals() -> Mapping[str, str]:
    """Return irregular plural -> singular.

    >>> build_irregular_plurals()["mice"], build_irregular_plurals()["series"]
    ('mouse', 'series')
    """
    return _parse_pairs(IRREGULAR_PLURALS)


@cache
def build_irregular_degrees() -> Mapping[str, Mapping[str, str]]:
    """Return part of speech -> irregular comparative or superlative -> base form."""
    return {"adj": _parse_pairs(IRREGULAR_ADJECTIVE_DEGREES), "adv": _parse_pairs(IRREGULAR_ADVERB_DEGREES)}


@cache
def build_irregular_verb_forms() -> Mapping[str, tuple[str, str]]:
    """Return irregular past or participle -> its base and its form: "past", "participle", or "both".

    >>> forms = build_irregular_verb_forms()
    >>> forms["took"], forms["taken"], forms["bought"]
    (('take', 'past'), ('take', 'participle'), ('buy', 'both'))
    """
    words = IRREGULAR_VERB_FORMS.replace("|", " ").split()
    found: dict[str, tuple[str, str]] = {}
    for base, past, participle in zip(words[::3], words[1::3], words[2::3], strict=True):
        if past == participle:
            found.setdefault(past, (base, "both"))
        else:
            found.setdefault(past, (base, "past"))
            found.setdefault(participle, (base, "participle"))
    found |= {"saw": ("see", "past"), "lay": ("lie", "past"), "got": ("get", "both"), "struck": ("strike", "both")}
    return found


@cache
def list_irregular_verbs() -> frozenset[str]:
    """Return the bases of irregular verbs."""
    return frozenset(IRREGULAR_VERB_FORMS.replace("|", " ").split()[::3]) - {"do", "have"}


REGULAR_VERBS = word_set(
    """
    ask use need want try call work seem help turn start play move like live believe happen include continue change
    watch follow stop create allow add open walk offer remember love consider appear wait serve die expect stay
    reach kill remain suggest raise pass require report decide pull refer contain consist involve cover treat
    form conduct apply provide produce occur receive depend develop describe determine identify indicate measure
    perform prevent reduce release replace represent resemble respond result reveal store suffer supply support
    survive travel vary visit wash wish worry explain express extend fail fill finish fix force gain gather handle
    hope imagine improve increase join jump kick kiss knock land last laugh list listen look lower maintain manage
    mark marry mention mix name note notice obtain operate order own paint park participate permit pick place plan
    plant point pour practise practice prefer prepare present press print promise protect prove publish push reflect
    refuse regard relate rely remove repair repeat request rest retain retire return roll rule rush save search share
    shop sign smile solve sort sound stare state step strengthen stretch struggle study succeed surround talk taste
    tend test thank tie touch train translate transfer translate transmit trust type vote warn waste weigh whisper
    wonder wrap yell adopt agree announce argue arrange arrive assume attack attempt attend avoid bake ban base
    behave belong benefit blame boil book borrow bother brush bury calculate carry cause celebrate challenge charge
    charge check claim clean clear climb close collect combine compare compete complain complete concern conclude
    confirm connect contribute control convert convince cook copy correct count crash cross cry damage dance deliver
    demand deny deserve design destroy detect differ disagree disappear discover discuss display divide double doubt
    drag dress drop earn employ enable encourage end enjoy ensure enter escape establish estimate examine exist
    expand expect experience explore export express face fear fit float flow fold grant grab greet guess guide hate
    head heat hire hunt hurry identify ignore impact import impress influence inform install intend interest introduce
    invest invite issue judge lack launch lift limit link load lock locate mail match matter melt miss monitor multiply
    nod obey object observe occupy owe pack persist please pose possess pray predict preserve pretend process propose
    punish purchase qualify question race rain rank rate react realise realize recall recognise recognize recommend
    record recover relax remind rent rescue resolve restore restrict review ruin sail scream seal seek select sense
    separate settle shape shout signal slip slow smoke snow specialise specialize stir strike submit suck suit supervise
    suppose surprise suspect swallow switch tackle target threaten tip trace track trade transport trap trip trouble
    update upgrade upload download urge walk wander whistle wipe yield zoom absorb accept access accompany account
    accuse achieve acquire act adapt address adjust admit advance advise affect afford aim analyse analyze answer
    appeal appoint appreciate approach approve assess assign assist associate attach attract award balance bark beg
    bless blink bloom blossom boost bounce breathe burn camp cancel capture cease circulate classify clap coach code
    collapse comment commit communicate compose comprise concentrate confuse construct consult consume contact convey
    cool cope cough crack crawl crush cure curl cycle decay decline decorate decrease dedicate defeat defend define
    delay delete demonstrate derive detect devote digest dip direct disable discharge dismiss dispose dissolve
    distinguish distribute dive dominate donate drain drift drill drip drown dry dump dust ease echo edit educate
    elect eliminate emerge emit emphasise emphasize enhance equip erase erode erupt evaluate evolve exceed exchange
    exclude excuse execute exercise exhibit explode expose fade feature file filter fire flash flood focus frame
    fry fund function generate govern grow guarantee harm harvest hatch heal highlight hug illustrate imply impose
    incorporate indicate infect inhale inherit initiate inject injure insert inspect inspire insist instruct insulate
    insure integrate intensify interact interfere interpret interrupt interview invent investigate isolate justify
    label lean lend liberate lick license lodge log lose manufacture march mate mature mention migrate mine mirror
    modify motivate mount move name narrow negotiate nominate number nurse obtain offend oppose opt organise organize
    originate outline overlap oversee participate peel penetrate perceive phone pin pitch plug pollinate polish pop
    portray position postpone praise preach presume proceed proclaim progress prohibit project promote pronounce
    protest pump puncture quote react rebuild recruit recycle register regret regulate reinforce reject relieve
    remark render renew repay reproduce resign resist restrict retreat reverse reward rinse risk rob rotate row rub
    sample scan scatter schedule score scrape scratch seal secrete seed shelter shift ship shock sigh ski skip
    slice snap soak span spark specify spell spill split spoil spot spray squeeze stabilise stain stamp state steam
    steer stem stick stimulate store strain strip structure subscribe sue sum supplement surge surrender suspend
    sustain swap symbolise tap tax tease telephone tempt terminate testify tick tolerate tour tow transform treat
    trigger trim tug twist undergo unite unlock vanish view violate volunteer weaken weld widen withdraw wreck
    """
)
"""Regular verbs that the thesaurus lacks, or has as another part of speech."""

MOSTLY_NOUNS = word_set(
    """
    number time water state form place result cause control name part point rate test type unit list lot side use
    work study plant land rain snow book case example fact figure form group head house increase interest issue
    level line market matter mind model mother order paper party people plan position power practice price
    process product program project question reason record report rest return risk role rule sample scale school
    score sense service set sign site size sound source space stage star step stock store story street structure style
    subject support surface system table target task tax team term title tool trade train training treatment trip
    trouble truck turn value view visit voice volume wall war waste wave way weather week weight wind word world
    yard year zone age air answer area arm arrival art attempt attack author back bank bar base battle bed benefit
    bill bit block board boat body bone border bottom box boy brain branch break bridge budget bus business button
    cable camera camp cap car card care cell center centre chain chair challenge chance channel character charge chart
    claim class clock cloud club coast coat code color colour command comment community company computer concern
    condition contact contract copy corner cost couple course court cover crew crop cross crowd culture cup cycle
    damage dance date day deal death debate debt degree delay demand design desk detail dish display distance doctor
    dog door doubt dream dress drink drive drop drug dust earth edge effect egg email end engine error event evidence
    exchange exercise experience experiment eye face factor farm father fear feature field fight file film filter
    finger fire fish flood floor flow flower focus food foot force frame friend front fruit fuel function fund game
    garden gas gate gift glass goal grade grain grant ground growth guard guess guest guide guitar gun hand harm
    harvest heart heat height hill hole home hope horse hour impact import influence island item job judge key kid
    king knee label lack lake language law leader leaf leg lesson library license lift light limit link load lock log
    love lunch machine mail man map march mark mass master match mate math meal measure meat metal milk mine minute
    mirror mix moment money month moon mountain mouth movie muscle music nature neck need network news night noise
    nose note notice nurse object office oil page pain paint pair park pass path pattern peak pet phone photo
    picture piece pilot pipe plate player pool post pound powder press pressure progress promise protest pump purpose
    race ratio record region relief rent request research review reward river road rock roof room root rope salt sand
    schedule science screen sea search season seat seed sentence sex shade shape share shelf shelter shift ship
    shock shop shoulder shower silver skill skin sleep smoke soil song sort soup speech speed spot spring stem
    storm strain stream strength stress string strip student stuff sugar suit summer sun supply surprise switch tail
    talk tank taste tea tear telephone theme thing thought tie tip tone tooth touch tour town track traffic transfer
    transport tree trial truth tube update user variety vehicle veto video village vote wage walk watch wheel wife
    wine wing winter wire woman wonder wood youth labour labor coach
    """
)
"""Nouns that can be verbs, but are nouns far more often."""

ADJECTIVES = word_set(
    """
    able non anti pre mid ultra semi multi such bad best big black blue brown certain chief clear cold common current
    daily dark dead deep different difficult
    due early easy eastern economic entire environmental evil extra fair false famous far fast few final fine first
    flat foreign former free fresh full further general genetic global good great green grey gray half happy hard
    heavy high hot huge human important individual initial inner internal international joint key large last late
    latter least left legal less likely little local long lone loud low lower main major male female many married
    maximum medical mental middle military minimum minor modern more most much multiple narrow national native natural
    necessary net new next nice normal northern nuclear numerous official old only open opposite oral orange ordinary
    original other outer overall overseas own particular past personal physical pink plain political poor popular
    positive possible potential present previous primary private professional proper public purple quick quiet rare
    raw ready real recent red regular related religious responsible rich right roman royal safe same secondary senior
    separate serious several sharp short sick significant similar simple single slow small social soft solid sorry
    southern special specific standard strong subject sudden sufficient sure sweet tall tertiary thick thin third tiny
    tired top total tough tropical true typical ugly unable unique upper upset urban useful usual various vast visual
    warm weak weekly western wet white whole wide wild wise wooden worse worst worth wrong yellow yearly young
    available alone alive asleep aware afraid dual elderly friendly lonely lovely costly deadly monthly oily silly
    likely unlikely online offline organic digital cheap clean dry empty equal exact extreme fat fit fond giant glad
    golden gold grand guilty healthy holy honest hungry ill illegal joint junior keen lucky mad mobile nearby
    nervous noisy parallel passive patient peaceful pleasant polite pregnant pretty proud pure random rapid rear
    relevant remote rough round rude rural sad salty secret severe shallow shy sour spare square stable steep stiff
    straight strange strict stupid surgical temporary thirsty tight toxic vague valid vital wealthy weird
    """
)
ADVERBS = word_set(
    """
    about again ago ahead almost alone along already also altogether always anyway apart around aside away back
    barely below besides better certainly clearly directly downstairs early elsewhere enough especially even ever
    everywhere exactly far fast finally first forever forth forward frequently further generally hardly here hence home
    however indeed instead just kind largely last late later least less likewise long maybe meanwhile merely more
    moreover most mostly much nearly never nevertheless next nonetheless normally not now nowadays nowhere often
    once only otherwise outside overall overseas perhaps possibly pretty probably quite rather really recently
    relatively round sadly seldom shortly simply sometimes somewhat somewhere soon still then there thereby
    therefore thus today together tomorrow tonight too twice usually very well whatsoever yesterday yet abroad
    afterwards
    inside indoors outdoors upstairs upwards downwards backwards forwards hereby nonstop online offline straight
    right left nearby worse worst best o'clock somehow anyhow anymore anywhere halfway sideways alike aloud
    high low hard deep wide close approximately please
    """
)
LIKELY_ADVERBS = word_set(
    """
    again ago almost already also altogether always anyway apart aside away barely besides elsewhere ever everywhere
    finally forever hardly here hence however indeed instead just likewise maybe meanwhile merely moreover mostly nearly
    never nevertheless nonetheless nowadays nowhere often only otherwise perhaps quite rather really seldom simply
    sometimes somewhat somewhere soon still then thereby therefore thus together too twice very well yet afterwards
    somehow anyhow anymore anywhere now even once later least please
    """
)
"""Words that are almost always adverbs; this list overrides the thesaurus."""
