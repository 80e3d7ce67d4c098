"""Things to ask and write about, in our own words, and the shapes of the questions."""

PLACES = """London|Paris|Tokyo|Cairo|Lagos|Mumbai|Sydney|Toronto|Chicago|Berlin|Madrid|Rome|Moscow|Beijing|Seoul|Jakarta|Lima|Bogota
Nairobi|Cape Town|Istanbul|Athens|Dublin|Oslo|Stockholm|Helsinki|Vienna|Prague|Warsaw|Lisbon|Houston|Seattle|Boston|Denver|Miami
Atlanta|Vancouver|Mexico City|Havana|Buenos Aires|Santiago|Manila|Bangkok|Hanoi|Singapore|Dubai|Tehran|Baghdad|Kabul|Islamabad
Kathmandu|Dhaka|Colombo|Accra|Addis Ababa|Casablanca|Tunis|Geneva|Brussels|Amsterdam|Edinburgh|Glasgow|Manchester|Belfast
Los Angeles|San Francisco|New Orleans|Philadelphia|Phoenix|Detroit|Auckland|Perth|Kuala Lumpur|Hong Kong|Taipei""".replace(
    "\n", "|"
).split(
    "|"
)

PEOPLE = """Maria|James|Aisha|Tom|Priya|Carlos|Emma|Liam|Olivia|Noah|Sofia|Ethan|Grace|Henry|Lucy|Daniel|Nina|Omar|Hannah|Ben|Chloe
Marcus|Elena|Victor|Ruth|Samuel|Julia|Kevin|Amara|Diego|Wendy|Peter|Zoe|George|Leah|Ivan|Tara|Felix|Rosa|Kenji""".replace(
    "\n", "|"
).split(
    "|"
)

NEWS = """a flood that closed the main bridge|a court ruling on privacy|an airline strike|a new vaccine trial|a football final
a banking scandal|an election result|a wildfire near the suburbs|a rescue at sea|a museum robbery|a train derailment|a tennis champion's comeback
a missing hiker found alive|a film star's divorce|a protest over fuel prices|a school shooting drill|a royal visit|a hospital merger
a drug trafficking trial|a peace agreement|a nuclear inspection|a hostage release|a plane crash investigation|a cyber attack on a city
a record heat wave|an earthquake and its aftershocks|a celebrity chef's new restaurant|a police officer's acquittal|a dog that saved a family
a budget vote in parliament|a space launch delayed again|a teenager who built a robot|an oil spill|a murder case reopened after decades
a football manager's dismissal|a boxing match|a music festival cancelled|a refugee camp|a measles outbreak|a tornado warning
a trade dispute over steel|a lottery winner|an archaeological discovery|a zoo's newborn panda|a marathon run in the rain
a data leak at a social network|a bridge collapse|a golf tournament|a factory closing|a mayor's resignation|a shark attack
a food poisoning outbreak|a heart transplant|an immigration reform|a cricket series|a stolen painting returned|a volcano eruption
a child's birthday wish|a housing shortage|a whistleblower's testimony|a rugby injury|a new phone|a submarine search""".replace(
    "\n", "|"
).split(
    "|"
)

SUBJECTS = """the French Revolution|photosynthesis|the human heart|black holes|the Roman Empire|plate tectonics|Shakespeare|jazz music
the water cycle|World War II|the Great Wall of China|vaccines|the stock market|electric cars|the solar system|the Olympic Games
the printing press|penguins|the Amazon rainforest|democracy|inflation|DNA|the Industrial Revolution|chess|the Nile|volcanoes
artificial intelligence|the Cold War|antibiotics|the moon landing|Buddhism|the United Nations|coffee|the periodic table
Greek mythology|climate change|the Eiffel Tower|basketball|the human brain|gravity|sharks|the Silk Road|impressionism|opera
the American Civil War|nuclear energy|honey bees|sleep|the Vikings|the internet|evolution|football|yoga|ancient Egypt
the Beatles|Leonardo da Vinci|the Titanic|dinosaurs|earthquakes|the immune system|time zones|the English language|Japan|Brazil
India|Australia|Canada|South Africa|Mexico|Germany|Star Wars|Harry Potter|the Simpsons|the Grand Canyon|wind turbines|chocolate
the Renaissance|Albert Einstein|Marie Curie|Martin Luther King|Napoleon|Cleopatra|Nelson Mandela|the Berlin Wall|the Supreme Court
the constitution of the United States|the Federal Reserve|tides|lightning|the speed of light|atoms|the human eye|vitamin D|diabetes
cancer|the lungs|muscles|bones|the liver|whales|elephants|cats|dogs|horses|frogs|butterflies|roses|oak trees|mushrooms|rice|bread
cheese|wine|tea|sugar|salt|gold|iron|plastic|glass|paper|steam engines|bicycles|airplanes|ships|trains|bridges|castles|pyramids
baseball|tennis|swimming|the World Cup|the Super Bowl|rock music|ballet|photography|cinema|television|radio|newspapers|novels|poetry
marriage|taxes|insurance|banks|money|trade|unions|elections|police|prisons|schools|universities|hospitals|the post office""".replace(
    "\n", "|"
).split(
    "|"
)

QUESTIONS = """What is {}?|Who discovered {}?|When did {} begin?|Where does {} come from?|How does {} work?|Why is {} important?
What are the main facts about {}?|Who is the most famous person connected with {}?|What is the history of {}?|How many kinds of {} are there?
When was {} first mentioned?|What does {} mean?|What is the difference between {} and {other}?|How long does {} last?
Which country is known for {}?|What happened to {}?|who played in the movie about {}|where is {} located|what is the purpose of {}
how old is {}|who wrote about {}|when did {} end|what causes {}|name three things about {}|is {} dangerous?
How do I learn about {}?|What is the largest example of {}?|How much does {} cost?|Can you explain {} to a child?""".replace(
    "\n", "|"
).split(
    "|"
)

TASKS = """Write a short essay about {}.|Write a poem about {}.|Give me five tips about {}.|Write a story that begins with {}.
Explain {} in simple terms.|List the advantages and disadvantages of {}.|Write a blog post about {}.|Write an email to a friend about {}.
Compare {} and {other}.|Imagine you are an expert on {}. What would you tell a beginner?|Make a plan to teach {} in a week.
Write a dialogue between two people who disagree about {}.|Describe {} in two sentences.|Write a product description related to {}.
What would happen if {} did not exist?|Write a speech about {} and {other}.|Give three arguments for and against {}.
Write a haiku about {}.|Create a quiz with four questions about {}.|Write a formal letter complaining about {}.
Suggest a title for an article about {}.|Draft a travel guide that mentions {}.|Summarise what you know about {}.
Write a movie review about a film on {}.|How would you advertise {}?|Act as a teacher and explain {} and {other}.
Analyse the social effects of {}.|Rewrite this sentence to be more polite: I do not like {}.|Tell me a joke about {}.""".replace(
    "\n", "|"
).split(
    "|"
)

CODE = """Write a Python function that {}.|Write a function in Python to {}.|How can I {} in Python?|Write C++ code to {}.
Write a JavaScript function to {}.|Explain how to {} step by step, with code.|Write a program that can {}.|Give me a SQL query to {}.""".replace(
    "\n", "|"
).split(
    "|"
)

PROGRAMS = """reverse a string|find the largest number in a list|count the words of a text|sort a list of tuples by the second element
check whether a number is prime|compute the factorial of a number|merge two sorted lists|remove duplicates from a list
find the sum of the digits of a number|check whether a string is a palindrome|find the longest word in a sentence|compute a moving average
convert Celsius to Fahrenheit|read a CSV file|count the vowels of a string|find the second smallest element|rotate an array
generate the first n Fibonacci numbers|find common elements of two lists|flatten a nested list|compute the greatest common divisor
validate an email address|parse a date|make a binary search tree|implement a stack|implement a queue|compute the median
transpose a matrix|multiply two matrices|find anagrams|count the occurrences of each character|compute the area of a circle
find missing numbers in a sequence|group records by a key|select the ten newest orders|join two tables|convert a number to binary
print a multiplication table|shuffle a deck of cards|find the shortest path in a graph|split a list into chunks|compute compound interest""".replace(
    "\n", "|"
).split(
    "|"
)

ASK_BEFORE = """Summarize:|Summarize the following text:|Please summarize this article:|Give a short summary of the text below.
Write a summary of this article in three sentences:|TL;DR of the following:|What are the key points of this text?
Read the article and tell me what happened:|Summarise:|Rewrite the following text in simpler words:|Write a headline and a summary for:""".replace(
    "\n", "|"
).split(
    "|"
)

ASK_AFTER = """What is this text about?|Summarize the text above.|Who is mentioned in the text?|When did this happen?
What is the main point?|Give a short answer: what is described here?|Based on the passage, what should one know?
Where does this take place?|How many are there?|Why is this important?|What happened first?|who is it about|when was it first used
what is the name of the place|how does it work|Which conditions are mentioned?|What does the author recommend?""".replace(
    "\n", "|"
).split(
    "|"
)

ASK_OF_CODE = """What does this function do?|Explain the following code:|Can you find a bug in this function?|Write a docstring for this function:
Rewrite this function to be shorter:|Write tests for this function:|What is the complexity of this code?""".replace(
    "\n", "|"
).split(
    "|"
)

ARTICLES = """Write a news article about {news} in {place}.|Write a long newspaper report about {news} in {place}, with quotes.
Write an encyclopedia article about {subject}.|Write a detailed overview of {subject}, with its history.
Write a feature article about {news} and {person} from {place}.|Write a long story about {person} in {place} and {news}.
Write an encyclopedia entry about {place} and {subject}.|Write a report on {subject} in {place}.""".replace(
    "\n", "|"
).split(
    "|"
)
