"""Simulated click logs: the Ranking SVM, the lists it shows and the clicks on them. No torch here."""

from ultr.simulation.causes import CAUSES as CAUSES
from ultr.simulation.causes import Cause as Cause
from ultr.simulation.causes import Device as Device
from ultr.simulation.causes import Effect as Effect
from ultr.simulation.causes import Grid as Grid
from ultr.simulation.causes import Pixels as Pixels
from ultr.simulation.causes import ResultLayout as ResultLayout
from ultr.simulation.log import ceiling_scores as ceiling_scores
from ultr.simulation.log import simulate as simulate
from ultr.simulation.log import simulate_more as simulate_more
from ultr.simulation.pages import Pages as Pages
from ultr.simulation.pages import lay_out as lay_out
from ultr.simulation.ranking_svm import RankingSVM as RankingSVM
from ultr.simulation.shown import ShownLists as ShownLists
from ultr.simulation.shown import shown_lists as shown_lists
