"""How an answer is read by rules over words, in English and some German. No model takes part, and all of it is pure.

clauses.py      a text as clauses, and what each of them does: assert, hedge, generalise, report, leave open
conclusions.py  which way an answer settles a yes/no question
acts.py         what it asks for, what it says cannot be had, what it claims to have done
figures.py      its numbers, dates and identifiers
facts.py        whether it states a fact, contradicts it, or leaves it unsaid

Rules read what they have words for. Where an answer may say something in words that they lack, they do not guess: the
fact is unclear, and left to a judge with a rubric, and to people.
"""
