"""rewarders"""
